import type { ModuleFinding } from "./finding.ts";

/**
 * The API server cuts every warning to 256 characters once all of them together, from every webhook, pass 4,096. Half of that
 * leaves room for others.
 */
export const WARNINGS_LIMIT = 2_000;

/** Longer ones may be cut by the server in the middle of a word; we cut them ourselves, and show that we did. */
export const WARNING_LENGTH = 256;

/**
 * What a person at a prompt sees: the most useful first, each once. What does not fit is counted in the last line, so that
 * nothing is dropped in silence.
 */
export function warningsOf(findings: readonly ModuleFinding[]): string[] {
  const warning = findings.filter((finding) => finding.warn !== undefined);
  // Nearly every request: nothing to rank.
  if (warning.length === 0) return [];
  const ranked = warning
    .sort((a, b) => (b.warn ?? 0) - (a.warn ?? 0))
    .map((finding) =>
      printable(finding.code === undefined ? finding.message : `${finding.message} (${finding.code})`),
    );
  const texts = [...new Set(ranked)];
  const shown: string[] = [];
  let length = 0;
  for (const text of texts) {
    const left = texts.length - shown.length - 1;
    // The last text may use all the room; any other must leave enough for the line that counts the rest.
    const reserve = left === 0 ? 0 : restOf(left).length;
    if (length + text.length + reserve > WARNINGS_LIMIT) break;
    shown.push(text);
    length += text.length;
  }
  if (shown.length < texts.length) shown.push(restOf(texts.length - shown.length));
  return shown;
}

function restOf(count: number): string {
  return `and ${count} more ${count === 1 ? "warning" : "warnings"}`;
}

/** The server drops a warning that holds a control character, and lone surrogates are no text at all. */
export function printable(text: string): string {
  const clean = text.replace(/[\u0000-\u001f\u007f-\u009f]+/g, " ").toWellFormed();
  if (clean.length <= WARNING_LENGTH) return clean;
  return `${clean.slice(0, WARNING_LENGTH - 1).toWellFormed()}…`;
}
