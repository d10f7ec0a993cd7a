import type { Attempt, FileState } from "../source/file-state.ts";
import { knownOf, makeCandidate } from "../source/file-version.ts";
import type { Pause } from "../source/pause.ts";
import type { Resources } from "../source/resources.ts";
import type { FileStat } from "../source/tree.ts";
import { NOT_FOUND, Unreadable } from "./bytes.ts";
import type { Reader, ReadFile } from "./reader.ts";

/** Files that are read while an earlier one is processed, so that neither side waits for the other. */
const READ_AHEAD = 16;

interface ReadingOptions {
  readonly resources: Resources;
  readonly pause: Pause;
  readonly progress: ((done: number, total: number, file: string) => void) | undefined;
}

/** Reads files and takes them in, in their order. */
export async function readAll(
  changed: readonly FileStat[],
  states: ReadonlyMap<string, FileState>,
  reader: Reader,
  { resources, pause, progress }: ReadingOptions,
): Promise<Attempt[]> {
  let done = 0;
  let total = changed.length;
  const begin = async ({ name, path }: FileStat): Promise<ReadFile | { readonly unreadable: string }> => {
    // Until it is known how many documents a file has, it counts as one.
    let counted = 0;
    let expected = 1;
    try {
      return await reader.read(path, knownOf(states.get(name)?.version), (read, of) => {
        done += read - counted;
        counted = read;
        total += of - expected;
        expected = of;
        progress?.(done, total, name);
      });
    } catch (error) {
      if (error instanceof Unreadable) return { unreadable: error.message };
      throw error;
    }
  };
  const ahead: ReturnType<typeof begin>[] = [];
  const attempts: Attempt[] = [];
  let next = 0;
  for (const stat of changed) {
    for (const one of changed.slice(next, next + READ_AHEAD - ahead.length)) {
      ahead.push(begin(one));
      next++;
    }
    const read = await ahead.shift();
    // Gone since it was seen: the next look will find it gone, and say so.
    if (read === undefined || ("unreadable" in read && read.unreadable === NOT_FOUND)) continue;
    const before = states.get(stat.name);
    const outcome =
      "unreadable" in read ? read : await makeCandidate(stat.name, read, before?.version, resources, pause);
    attempts.push({ stat, before, outcome });
  }
  return attempts;
}
