/**
 * The text of one object. etcd stores 1.5 MiB, and JSON takes up to six bytes for one of them (`<` is `\u003c`); such
 * text parses to less than its own size. Objects of many small values take 24 times their text, which is at most what
 * etcd stores: 36 MiB. A longer text is not an object, and must not fill the memory.
 */
export const OBJECT_BYTES = 16 * 1024 * 1024;

const NEWLINE = 0x0a;

/** A line is longer than any object. */
export class LineTooLongError extends Error {
  constructor(limit: number) {
    super(`received a line of more than ${limit} bytes`);
  }
}

/**
 * Splits bytes into lines. Only whole lines are decoded, so a character that is split between two chunks is never
 * decoded in halves. Drops the text after the last newline: a broken connection left half a line.
 */
export async function* linesOf(
  chunks: AsyncIterable<Uint8Array>,
  limit: number = OBJECT_BYTES,
): AsyncGenerator<string, void, undefined> {
  let pending: Buffer[] = [];
  let length = 0;
  for await (const chunk of chunks) {
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    let from = 0;
    for (;;) {
      const end = bytes.indexOf(NEWLINE, from);
      const part = bytes.subarray(from, end === -1 ? bytes.length : end);
      length += part.length;
      if (length > limit) throw new LineTooLongError(limit);
      if (end === -1) {
        if (part.length > 0) pending.push(part);
        break;
      }
      const line = pending.length === 0 ? part : Buffer.concat([...pending, part], length);
      pending = [];
      length = 0;
      from = end + 1;
      if (line.length > 0) yield line.toString("utf8");
    }
  }
}
