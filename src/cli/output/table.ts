/** A longer cell overflows in its own row and does not widen the column of all others. */
const WIDEST = 60;

/** Between two columns, as in kubectl. */
const GAP = "   ";

/** The width of a column, from its cells. */
function widthOf(cells: readonly string[]): number {
  return Math.max(0, ...cells.map(({ length }) => length).filter((length) => length <= WIDEST));
}

/** Lines of a table as kubectl prints it: upper-case headers, columns separated by spaces, no trailing spaces. */
export function table(header: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const all = [header, ...rows];
  const widths = header.map((_, column) => widthOf(all.map((row) => row[column] ?? "")));
  return all.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join(GAP)
      .trimEnd(),
  );
}
