import { fieldPath } from "../../core/path.ts";
import { describeObject, writtenPath } from "../source/entry.ts";
import type { Candidate } from "../source/file-version.ts";
import type { FileProblem } from "../source/report.ts";
import { Unreadable } from "./bytes.ts";
import type { Located } from "./read-documents.ts";
import type { Reader } from "./reader.ts";

/** All problems of a file with their places, located in its text. */
export async function locateAll(
  reader: Reader,
  path: string,
  shown: string,
  candidate: Candidate,
): Promise<FileProblem[]> {
  const problems = candidate.located.map((one): FileProblem => ({ ...one, file: shown, severity: "error" }));
  if (candidate.pending.length > 0) {
    const wanted = candidate.pending.map(({ document, entry, problem }) => ({
      document,
      path: [...entry.path, ...writtenPath(entry, problem.path)],
      message: problem.message,
      ...(problem.hint === undefined ? {} : { hint: problem.hint }),
    }));
    const places = await placesOf(reader, path, wanted);
    for (const [i, { entry, problem }] of candidate.pending.entries()) {
      const place = places[i];
      const field = fieldPath(writtenPath(entry, problem.path));
      const hint = place?.hint ?? problem.hint;
      problems.push({
        file: shown,
        line: place?.line ?? 0,
        column: place?.column ?? 0,
        message: field === "" ? problem.message : `${field}: ${problem.message}`,
        severity: problem.severity,
        ...(problem.strict ? { strict: true } : {}),
        frame: place?.frame ?? "",
        ...(hint === undefined ? {} : { hint }),
        ...(entry.object === undefined ? {} : { object: describeObject(entry.object) }),
      });
    }
  }
  return problems.sort((a, b) => a.line - b.line || a.column - b.column);
}

/** Places in a file; none where the file went away or changed meanwhile: the next look will find it. */
export async function placesOf(
  reader: Reader,
  path: string,
  wanted: Parameters<Reader["locate"]>[1],
): Promise<readonly (Located | undefined)[]> {
  try {
    return await reader.locate(path, wanted);
  } catch (error) {
    if (error instanceof Unreadable) return [];
    throw error;
  }
}
