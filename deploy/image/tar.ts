// Tar archives, written the same way each time and read whole.
import { createHash } from "node:crypto";
import { buffer } from "node:stream/consumers";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { extract, type Header, pack } from "tar-stream";
import type { Tree } from "./tree.ts";

const compress = promisify(gzip);

/** zlib's default. Level 9 takes three times as long for a third of a percent. */
const LEVEL = 6;

export function sha256(content: string | Buffer): string {
  return createHash("sha256").update(content).digest("hex");
}

/** The tree as a tar: sorted, of root, with one time for all. */
export async function toTar(tree: Tree, time: Date): Promise<Buffer> {
  const archive = pack();
  const written = buffer(archive);
  for (const [name, entry] of tree.sorted()) {
    const common = { name, type: entry.type, mtime: time, uid: 0, gid: 0, uname: "", gname: "" };
    if (entry.type === "symlink") archive.entry({ ...common, mode: 0o777, linkname: entry.target });
    else if (entry.type === "directory") archive.entry({ ...common, mode: entry.mode });
    else archive.entry({ ...common, mode: entry.mode, size: entry.content.length }, entry.content);
  }
  archive.finalize();
  return written;
}

/** Without a name, a time or an operating system in its header, so that one content has one form. */
export async function toGzip(content: Buffer): Promise<Buffer> {
  const packed = await compress(content, { level: LEVEL });
  packed[9] = 0xff;
  return packed;
}

/** Every entry of a tar, with its content. */
export async function* fromTar(archive: Buffer): AsyncGenerator<{ header: Header; content: Buffer }> {
  const reader = extract();
  reader.end(archive);
  for await (const entry of reader) yield { header: entry.header, content: await buffer(entry) };
}
