/**
 * Where the width of the output is unknown, a longer cell overflows in its own row and does not widen the column of all others; unless most
 * cells are longer, as long names are.
 */
const WIDEST = 60;

/** Between two columns, as in kubectl. */
const GAP = "   ";

/** A column of a narrow terminal still shows a short word. */
const NARROWEST = 10;

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
  const widths = width === undefined ? natural : fitted(natural, wordsOf(all, natural), width);
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

/** The longest word of each column, which a narrower column would break. */
function wordsOf(rows: readonly (readonly string[])[], natural: readonly number[]): number[] {
  const longest = natural.map(() => 0);
  for (const row of rows)
    for (const [column, cell] of row.entries())
      for (const [i, word] of cell.split(" ").entries())
        longest[column] = Math.max(longest[column] ?? 0, word.length + (i > 0 ? INDENT.length : 0));
  return natural.map((width, column) => Math.min(width, longest[column] ?? 0));
}

/** Widths that fit: the widest columns shrink first, to their longest words if all of these fit. */
function fitted(natural: readonly number[], words: readonly number[], width: number): number[] {
  const widths = [...natural];
  const room = width - GAP.length * (natural.length - 1);
  const fit = words.reduce((sum, one) => sum + one, 0) <= room;
  const spare = (column: number): number => (widths[column] ?? 0) - (fit ? (words[column] ?? 0) : NARROWEST);
  let excess = widths.reduce((sum, one) => sum + one, 0) - room;
  while (excess > 0) {
    const [first, second] = widths
      .map((_, column) => column)
      .filter((column) => spare(column) > 0)
      .sort((a, b) => (widths[b] ?? 0) - (widths[a] ?? 0));
    if (first === undefined) break;
    const most = widths[first] ?? 0;
    const further = second === undefined ? most : most - (widths[second] ?? 0);
    const give = Math.min(excess, Math.max(1, further), spare(first));
    widths[first] = most - give;
    excess -= give;
  }
  return widths;
}

/** A cell in lines, broken at spaces, else after a sign in the second half of the line, else anywhere. */
function wrapped(cell: string, width: number): string[] {
  const lines: string[] = [];
  let rest = cell;
  while (rest.length > width) {
    const space = rest.lastIndexOf(" ", width);
    const sign = [...rest.slice(0, width).matchAll(/[/.,:=-](?=\w|$)/g)].at(-1)?.index ?? 0;
    const indent = lines.length === 0 ? 0 : INDENT.length;
    const cut = space > indent ? space : sign + 1 > width / 2 ? sign + 1 : width;
    lines.push(rest.slice(0, cut));
    rest = `${INDENT}${rest.slice(cut).trimStart()}`;
  }
  return [...lines, rest];
}
