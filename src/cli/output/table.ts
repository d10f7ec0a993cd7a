/**
 * Where the width of the output is unknown, a longer cell overflows in its own row and does not widen the column of all others; unless most
 * cells are longer, as long names are.
 */
const WIDEST = 60;

/** Between two columns, as in kubectl. */
const GAP = "   ";

/** A column of a narrow terminal still shows a word or two. */
const NARROWEST = 12;

/** Continued text is indented, so that it does not look like a further entry. */
const INDENT = "  ";

/** Lines of a table as kubectl prints it: upper-case headers, columns separated by spaces, no trailing spaces. */
export function table(
  header: readonly string[],
  rows: readonly (readonly string[])[],
  width?: number,
): string[] {
  return tableRows(header, rows, width).flat();
}

/** The lines of each row, the header first. With a `width` longer cells continue on separate lines. */
export function tableRows(
  header: readonly string[],
  rows: readonly (readonly string[])[],
  width?: number,
): string[][] {
  const all = [header, ...rows];
  const limit = width === undefined ? WIDEST : Number.POSITIVE_INFINITY;
  const natural = header.map((_, column) => widest(all, column, limit));
  const widths = width === undefined ? natural : fitted(natural, width);
  return all.map((row) => {
    const cells = row.map((cell, column) =>
      width === undefined ? [cell] : wrapped(cell, widths[column] ?? 0),
    );
    const height = Math.max(...cells.map(({ length }) => length));
    return Array.from({ length: height }, (_, line) =>
      cells
        .map((lines, column) => (lines[line] ?? "").padEnd(widths[column] ?? 0))
        .join(GAP)
        .trimEnd(),
    );
  });
}

function widest(rows: readonly (readonly string[])[], column: number, limit: number): number {
  let [width, longest, shorter, longer] = [0, 0, 0, 0];
  for (const row of rows) {
    const length = row[column]?.length ?? 0;
    longest = Math.max(longest, length);
    if (length > limit) longer++;
    else if (length > 0) {
      shorter++;
      width = Math.max(width, length);
    }
  }
  return longer > shorter ? longest : width;
}

/** Widths that fit: the widest columns shrink first. */
function fitted(natural: readonly number[], width: number): number[] {
  const widths = [...natural];
  const room = width - GAP.length * (natural.length - 1);
  let excess = widths.reduce((sum, one) => sum + one, 0) - room;
  while (excess > 0) {
    const [first = 0, second = 0] = widths.toSorted((a, b) => b - a);
    const give = Math.min(excess, Math.max(1, first - second), first - NARROWEST);
    if (give <= 0) break;
    widths[widths.indexOf(first)] = first - give;
    excess -= give;
  }
  return widths;
}

/** A cell in lines, broken at spaces if there are any. */
function wrapped(cell: string, width: number): string[] {
  const lines: string[] = [];
  let rest = cell;
  while (rest.length > width) {
    const space = rest.lastIndexOf(" ", width);
    const cut = space > INDENT.length ? space : width;
    lines.push(rest.slice(0, cut));
    rest = `${INDENT}${rest.slice(cut).trimStart()}`;
  }
  return [...lines, rest];
}
