import { isUtf8 } from "node:buffer";
import { constants } from "node:fs";
import { open } from "node:fs/promises";
import type { TextProblem } from "../text/yaml.ts";

/** Ten thousand policies have some 10 MB. A file larger than this is a mistake, such as a log or a database. */
export const MAX_FILE_BYTES = 64 * 1024 * 1024;

/** The reason for a missing file, which is not a problem of the file. */
export const NOT_FOUND = "does not exist";

/** A file that can't be read, with a message for the user. */
export class Unreadable extends Error {}

/** Reads a regular file. Never blocks on a special file, such as a pipe without a writer. */
export async function readText(path: string): Promise<{ text: string; problems: TextProblem[] }> {
  let bytes: Buffer;
  try {
    const handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      const found = await handle.stat();
      if (!found.isFile()) throw new Unreadable("is not a regular file");
      if (found.size > MAX_FILE_BYTES) {
        const limit = MAX_FILE_BYTES / 1024 / 1024;
        throw new Unreadable(`is larger than ${limit} MiB; split it into several files`);
      }
      bytes = await handle.readFile();
    } finally {
      await handle.close();
    }
  } catch (error) {
    throw error instanceof Unreadable ? error : new Unreadable(reasonOf(error));
  }
  return decode(bytes);
}

/** Bytes as text, with the encoding problems. */
export function decode(bytes: Buffer): { text: string; problems: TextProblem[] } {
  const text = bytes.toString("utf8").replace(/^\ufeff/, "");
  if (!isUtf8(bytes)) {
    const utf16 = (bytes[0] === 0xff && bytes[1] === 0xfe) || (bytes[0] === 0xfe && bytes[1] === 0xff);
    const start = Math.max(0, text.indexOf("\ufffd"));
    const message = utf16 ? "the file is UTF-16; save it as UTF-8" : "invalid UTF-8";
    return { text, problems: [{ start, end: start + 1, message }] };
  }
  const start = text.search(/[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]/);
  if (start === -1) return { text, problems: [] };
  const code = (text.codePointAt(start) ?? 0).toString(16).toUpperCase().padStart(4, "0");
  const message = `control character U+${code} is not allowed`;
  return { text, problems: [{ start, end: start + 1, message }] };
}

/** The operating system's error as a message. */
export function reasonOf(error: unknown): string {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  switch (code) {
    case "EACCES":
    case "EPERM":
      return "can't be read: permission denied";
    case "ENOENT":
      return NOT_FOUND;
    case "ELOOP":
      return "is a symbolic link loop";
    case "EISDIR":
      return "is a directory";
    case "ENOTDIR":
      return "is not in a directory";
    case "ENXIO":
      return "is not a regular file";
    default:
      return `can't be read: ${error instanceof Error ? error.message : String(error)}`;
  }
}
