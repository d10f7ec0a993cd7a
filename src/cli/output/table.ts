/** One long cell must not push the next column of every row out of sight: what is longer than this runs over in its own row. */
const WIDEST = 60;

/** Between two columns, as kubectl has it. */
const GAP = "   ";

/** How wide a column is, from all that stands in it. */
function widthOf(cells: readonly string[]): number {
  return Math.max(0, ...cells.map(({ length }) => length).filter((length) => length <= WIDEST));
}

/** Columns by spaces, as kubectl prints them: upper-case headers, nothing after the last column. One text for each row. */
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
