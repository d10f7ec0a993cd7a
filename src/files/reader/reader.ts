import { Pause } from "../source/pause.ts";
import { cutChunks } from "../text/chunks.ts";
import { readText } from "./bytes.ts";
import {
  type Located,
  located,
  locateProblems,
  type ReadDocument,
  readChunk,
  type Wanted,
} from "./read-documents.ts";

/** A file as it was read. */
export interface ReadFile {
  /** Documents that are known are given by their hash alone. */
  readonly documents: readonly (ReadDocument | string)[];
  /** Problems of the file as a whole, outside of any document. */
  readonly problems: readonly Located[];
}

/** Reads files, somewhere. `read` and `locate` reject with `Unreadable` where there is nothing to read. */
export interface Reader {
  readonly read: (
    path: string,
    known: readonly string[],
    progress: (done: number, total: number) => void,
  ) => Promise<ReadFile>;
  readonly locate: (path: string, wanted: readonly Wanted[]) => Promise<(Located | undefined)[]>;
  readonly end: () => Promise<void>;
}

/** Reads in this thread, with pauses: right for little, since starting a worker takes longer than reading a few files. */
export function inlineReader(): Reader {
  const pause = new Pause();
  return {
    read: async (path, known, progress) => {
      const documents: (ReadDocument | string)[] = [];
      const problems = await readFile(path, known, (document, total) => {
        progress(documents.push(document), total);
        return pause.due ? pause.take() : undefined;
      });
      return { documents, problems };
    },
    locate: locateInFile,
    end: async () => {},
  };
}

/** Gives the documents of a file one by one, and at the end the problems of the file as a whole. */
export async function readFile(
  path: string,
  known: readonly string[],
  take: (document: ReadDocument | string, total: number) => Promise<void> | undefined,
): Promise<Located[]> {
  const { text, problems } = await readText(path);
  // Bytes that are no text would only make nonsense of everything that follows.
  if (problems.length > 0) return problems.map((problem) => located(text, problem));
  const cut = cutChunks(text);
  const hashes = new Set(known);
  for (const chunk of cut.chunks) {
    const applied = take(readChunk(text, chunk, hashes), cut.chunks.length);
    if (applied !== undefined) await applied;
  }
  return cut.problems.map((problem) => located(text, problem));
}

export async function locateInFile(
  path: string,
  wanted: readonly Wanted[],
): Promise<(Located | undefined)[]> {
  const { text } = await readText(path);
  return locateProblems(text, wanted);
}
