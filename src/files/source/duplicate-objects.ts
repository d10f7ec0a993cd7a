import { PROBLEM } from "../../core/policy/problem.ts";
import { readText, Unreadable } from "../reader/bytes.ts";
import { type Located, locateProblems } from "../reader/read-documents.ts";
import { describeObject, type Entry } from "./entry.ts";
import type { FileProblem } from "./report.ts";

/** More than these are one mistake, such as a directory that was copied into itself, and need not all be located. */
const MAX_DUPLICATES = 50;

interface FileNames {
  readonly path: string;
  /** As the user would type it. */
  readonly shown: string;
}

/** Objects with two definitions: each definition after the first is a problem that names both. */
export async function duplicateProblems(
  duplicates: Iterable<readonly Entry[]>,
  fileOf: (name: string) => FileNames,
): Promise<{ readonly file: string; readonly problem: FileProblem }[]> {
  const found: { readonly file: string; readonly problem: FileProblem }[] = [];
  for (const [first, ...rest] of duplicates) {
    if (first === undefined || found.length >= MAX_DUPLICATES) break;
    const used = await placeOf(first, "", fileOf);
    const where = `${fileOf(first.place.file).shown}${used === undefined ? "" : `:${used.line}:${used.column}`}`;
    for (const entry of rest) {
      const message = `${describeObject(entry.object)} is defined in ${where} already; that one is used`;
      const hint = "remove one of them";
      const place = await placeOf(entry, hint, fileOf);
      const { line = 0, column = 0, frame = "" } = place ?? {};
      const problem: FileProblem = {
        file: fileOf(entry.place.file).shown,
        line,
        column,
        message,
        hint,
        severity: "error",
        code: PROBLEM.duplicate,
        frame,
        object: describeObject(entry.object),
      };
      found.push({ file: entry.place.file, problem });
    }
  }
  return found;
}

async function placeOf(
  entry: Entry,
  hint: string,
  fileOf: (name: string) => FileNames,
): Promise<Located | undefined> {
  const named = entry.resource.policy?.configuration === undefined;
  const wanted = {
    document: entry.place.document,
    path: [...entry.place.path, ...(named ? ["metadata", "name"] : ["kind"])],
    message: named ? entry.name : (entry.resource.policy?.kind ?? ""),
    hint,
  };
  try {
    const { text } = await readText(fileOf(entry.place.file).path);
    return locateProblems(text, [wanted])[0];
  } catch (error) {
    // The file is gone by now: the next scan will notice.
    if (error instanceof Unreadable) return undefined;
    throw error;
  }
}
