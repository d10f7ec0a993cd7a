import type { Span } from "./yaml.ts";

/** A position in a file as editors and terminals count: from one. */
export interface Position {
  readonly line: number;
  readonly column: number;
}

/** Columns of a line that are shown; the rest of an 80 to 120 column terminal is for the line number. */
const SHOWN = 100;

/** The position of an offset. */
export function positionAt(text: string, offset: number): Position {
  const end = Math.min(offset, text.length);
  let line = 1;
  let start = 0;
  for (let i = text.indexOf("\n"); i !== -1 && i < end; i = text.indexOf("\n", i + 1)) {
    line++;
    start = i + 1;
  }
  return { line, column: end - start + 1 };
}

/** The line of any offset of a text, from one, by binary search: for many positions in one text. */
export class LineIndex {
  /** Where lines begin. */
  readonly #starts: number[] = [0];

  constructor(text: string) {
    for (let i = text.indexOf("\n"); i !== -1; i = text.indexOf("\n", i + 1)) this.#starts.push(i + 1);
  }

  lineAt(offset: number): number {
    let low = 0;
    let high = this.#starts.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#starts[middle] ?? 0) <= offset) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

/**
 * The lines around a problem, with carets below it:
 *
 * 13
 * - key: dedicated
 * 14
 * operator: Exist
 * |                 ^^^^^ did you mean "Exists"?
 */
export function codeFrame(text: string, span: Span, hint?: string): string {
  const { line, column } = positionAt(text, span.start);
  const end = Math.min(span.start, text.length);
  const lineStart = end - column + 1;
  const current = lineAt(text, lineStart);
  const shift = Math.max(0, column - 1 - Math.floor((SHOWN * 3) / 4));
  const width = String(line).length + 3;
  const rows: string[] = [];
  if (lineStart > 0) {
    const before = lineAt(text, text.lastIndexOf("\n", lineStart - 2) + 1);
    if (before.trim() !== "") rows.push(row(String(line - 1), width, cut(before, shift)));
  }
  rows.push(row(String(line), width, cut(current, shift)));
  const room = Math.max(1, current.length - (column - 1));
  const length = Math.max(1, Math.min(span.end - span.start, room, SHOWN - (column - 1 - shift)));
  const marks = `${" ".repeat(column - 1 - shift)}${"^".repeat(length)}${hint === undefined ? "" : ` ${hint}`}`;
  rows.push(row("", width, marks));
  return rows.join("\n");
}

function row(number: string, width: number, content: string): string {
  return `${number.padStart(width)} | ${content}`.trimEnd();
}

function lineAt(text: string, start: number): string {
  const end = text.indexOf("\n", start);
  // A line of ten megabytes is cut first.
  return text.slice(start, end === -1 ? start + 100_000 : Math.min(end, start + 100_000)).replace(/\r$/, "");
}

/** A line in printable form: one column per character, without terminal control characters. */
function cut(line: string, shift: number): string {
  return line
    .slice(shift, shift + SHOWN)
    .replace(/\t/g, " ")
    .replace(/[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]/g, "\u00b7");
}
