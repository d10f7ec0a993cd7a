// The result of a part: lines for users, figures for programs.

/** What a figure has to reach. */
export interface Target {
  /** `at least 0.85` */
  readonly says: string;
  /** Undefined if the machine was too busy: neither met nor missed. */
  readonly met: boolean | undefined;
}

export interface Row {
  readonly what: string;
  readonly figure: string;
  /** Minimum and maximum, if measured several times. */
  readonly spread?: string;
  readonly detail?: string;
  readonly target?: Target;
}

export interface Result {
  readonly title: string;
  readonly rows: readonly Row[];
  /** Everything measured, as JSON. */
  readonly figures: unknown;
}

export function atLeast(limit: number, value: number): Target {
  return { says: `at least ${limit}`, met: value >= limit };
}

export function atMost(limit: number, value: number, unit = ""): Target {
  return { says: `at most ${limit}${unit}`, met: value <= limit };
}

/** The number of targets in this state. */
export function targetsThat(results: readonly Result[], met: Target["met"]): number {
  return results
    .flatMap(({ rows }) => rows)
    .filter(({ target }) => target !== undefined && target.met === met).length;
}

const MARKS = new Map<Target["met"] | "none", string>([
  [true, "ok"],
  [false, "MISSED"],
  [undefined, "too noisy to say"],
  ["none", ""],
]);

const COLUMNS = ["", "figure", "spread", "", "target", ""] as const;

/** All results as one table. Missed targets are marked by a word, not by a colour. */
export function tableOf(results: readonly Result[]): string {
  const body = results.map(({ title, rows }) => ({ title, cells: rows.map(cellsOf) }));
  const all = [COLUMNS, ...body.flatMap(({ cells }) => cells)];
  const widths = COLUMNS.map((_, i) => Math.max(...all.map((cells) => cells[i]?.length ?? 0)));
  const line = (cells: readonly string[]) =>
    `  ${cells.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join("  ")}`.trimEnd();
  const lines = [line(COLUMNS)];
  for (const { title, cells } of body) lines.push("", title, ...cells.map(line));
  return `${lines.join("\n")}\n`;
}

function cellsOf({ what, figure, spread = "", detail = "", target }: Row): readonly string[] {
  const mark = MARKS.get(target === undefined ? "none" : target.met) ?? "";
  return [what, figure, spread, detail, target?.says ?? "", mark];
}
