import { truncate } from "../decision/bounds.ts";
import { type ModuleFinding, messageWithCode } from "../decision/finding.ts";

/**
 * The API server cuts every warning to 256 characters once all of them together, from every webhook and from itself, exceed this
 * many (truncateAtTotalRunes of k8s.io/apiserver).
 */
export const SERVER_WARNINGS_LIMIT = 4_096;

/** All warnings together: half of the API server's limit leaves room for other webhooks. */
export const WARNINGS_LIMIT = 2_000;

/** Longer ones may be cut by the API server in the middle of a word; they are cut here, visibly. */
export const WARNING_LENGTH = 256;

interface Warning {
  readonly text: string;
  readonly verbatim: boolean;
}

/**
 * The warnings of a response: the highest rank first, each once. Lower-ranked ones are omitted whole if not all fit,
 * and the last line counts them. Verbatim ones stay whole and may use the API server's full limit: a cut one would
 * appear beside the text that it repeats instead of as one with it.
 */
export function warningsOf(findings: readonly ModuleFinding[]): string[] {
  const warnings = findings.filter((finding) => finding.warn !== undefined);
  // Nearly every request: nothing to rank.
  if (warnings.length === 0) return [];
  const ranked = warnings.sort((a, b) => (b.warn ?? 0) - (a.warn ?? 0)).map(warningOf);
  const limit = ranked.some(({ verbatim }) => verbatim) ? SERVER_WARNINGS_LIMIT : WARNINGS_LIMIT;
  const texts = [...new Set(ranked.map(({ text }) => text))];
  const shown: string[] = [];
  let length = 0;
  for (const text of texts) {
    const left = texts.length - shown.length - 1;
    // The last string may use the full limit; any other must leave space for the line that counts the rest.
    const reserve = left === 0 ? 0 : restOf(left).length;
    if (length + text.length + reserve > limit) break;
    shown.push(text);
    length += text.length;
  }
  if (shown.length < texts.length) shown.push(restOf(texts.length - shown.length));
  return shown;
}

/** A verbatim text that alone exceeds the API server's limit would be cut there in any case. */
function warningOf(finding: ModuleFinding): Warning {
  const { warning } = finding;
  const message = messageWithCode(warning === undefined ? finding : { ...finding, message: warning });
  const whole = finding.verbatim ? printable(message, Number.POSITIVE_INFINITY) : undefined;
  return whole !== undefined && whole.length + RESERVE <= SERVER_WARNINGS_LIMIT
    ? { text: whole, verbatim: true }
    : { text: printable(message), verbatim: false };
}

function restOf(count: number): string {
  return `and ${count} more ${count === 1 ? "warning" : "warnings"}`;
}

/** For the line that counts the rest, for any count. */
const RESERVE = restOf(1e9).length;

/** The API server drops a warning with a control character, and lone surrogates are not valid text. */
export function printable(text: string, longest = WARNING_LENGTH): string {
  const clean = text.replace(/[\u0000-\u001f\u007f-\u009f]+/g, " ").toWellFormed();
  return truncate(clean, longest);
}
