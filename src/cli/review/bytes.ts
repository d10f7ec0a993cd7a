import { createReadStream, type Stats } from "node:fs";
import { decode, MAX_FILE_BYTES, readText, reasonOf, Unreadable } from "../../files/reader/bytes.ts";
import type { TextProblem } from "../../files/text/yaml.ts";

interface Read {
  readonly text: string;
  readonly problems: readonly TextProblem[];
}

/** A file, or a pipe such as `<(helm template shop)`. */
export async function readWhole(path: string, found: Stats): Promise<Read> {
  if (found.isFile()) return readText(path);
  if (!found.isFIFO() && !found.isCharacterDevice()) throw new Unreadable("is not a regular file");
  return readStream(createReadStream(path));
}

/** A stream to its end, up to the maximum size of a file. */
export async function readStream(stream: AsyncIterable<Uint8Array | string>): Promise<Read> {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  try {
    for await (const part of stream) {
      const chunk = typeof part === "string" ? Buffer.from(part) : part;
      bytes += chunk.length;
      if (bytes > MAX_FILE_BYTES) {
        throw new Unreadable(`is larger than ${MAX_FILE_BYTES / 1024 / 1024} MiB; split it`);
      }
      parts.push(chunk);
    }
  } catch (error) {
    throw error instanceof Unreadable ? error : new Unreadable(reasonOf(error));
  }
  return decode(Buffer.concat(parts));
}
