/** Lines around a change, as in diff -u. */
const CONTEXT = 3;

/** Longer texts are shown as replaced: the table of the longest common subsequence would not fit in memory. */
const MAX_LINES = 4_000;

interface Line {
  readonly sign: " " | "-" | "+";
  readonly text: string;
}

/** A unified diff of two texts, without headers; empty where they are equal. */
export function unifiedDiff(before: string, after: string): string[] {
  const lines = linesOf(before === "" ? [] : before.split("\n"), after === "" ? [] : after.split("\n"));
  const changed = lines.flatMap(({ sign }, i) => (sign === " " ? [] : [i]));
  const [first] = changed;
  if (first === undefined) return [];
  const hunks: { from: number; to: number }[] = [];
  for (const i of changed) {
    const last = hunks.at(-1);
    if (last !== undefined && i <= last.to + 2 * CONTEXT) last.to = i;
    else hunks.push({ from: i, to: i });
  }
  return hunks.flatMap(({ from, to }) => {
    const start = Math.max(0, from - CONTEXT);
    const end = Math.min(lines.length, to + CONTEXT + 1);
    const count = (side: "-" | "+", until: number, begin = 0) =>
      lines.slice(begin, until).filter(({ sign }) => sign === " " || sign === side).length;
    const range = (side: "-" | "+") => {
      const length = count(side, end, start);
      return `${count(side, start) + (length === 0 ? 0 : 1)}${length === 1 ? "" : `,${length}`}`;
    };
    return [
      `@@ -${range("-")} +${range("+")} @@`,
      ...lines.slice(start, end).map(({ sign, text }) => `${sign}${text}`),
    ];
  });
}

function linesOf(before: readonly string[], after: readonly string[]): Line[] {
  let head = 0;
  while (head < before.length && head < after.length && before[head] === after[head]) head++;
  let tail = 0;
  while (
    tail < before.length - head &&
    tail < after.length - head &&
    before[before.length - 1 - tail] === after[after.length - 1 - tail]
  )
    tail++;
  const same = (text: string): Line => ({ sign: " ", text });
  return [
    ...before.slice(0, head).map(same),
    ...middle(before.slice(head, before.length - tail), after.slice(head, after.length - tail)),
    ...before.slice(before.length - tail).map(same),
  ];
}

/** By the longest common subsequence. */
function middle(before: readonly string[], after: readonly string[]): Line[] {
  const removed = before.map((text): Line => ({ sign: "-", text }));
  const added = after.map((text): Line => ({ sign: "+", text }));
  if (before.length > MAX_LINES || after.length > MAX_LINES) return [...removed, ...added];
  const width = after.length + 1;
  const lengths = new Uint16Array((before.length + 1) * width);
  for (let i = before.length - 1; i >= 0; i--)
    for (let j = after.length - 1; j >= 0; j--)
      lengths[i * width + j] =
        before[i] === after[j]
          ? (lengths[(i + 1) * width + j + 1] ?? 0) + 1
          : Math.max(lengths[(i + 1) * width + j] ?? 0, lengths[i * width + j + 1] ?? 0);
  const lines: Line[] = [];
  let [i, j] = [0, 0];
  while (i < before.length || j < after.length) {
    const text = before[i] ?? "";
    if (i < before.length && j < after.length && text === after[j]) {
      lines.push({ sign: " ", text });
      i++;
      j++;
    } else if (
      j >= after.length ||
      (i < before.length && (lengths[(i + 1) * width + j] ?? 0) >= (lengths[i * width + j + 1] ?? 0))
    ) {
      lines.push({ sign: "-", text });
      i++;
    } else {
      lines.push({ sign: "+", text: after[j] ?? "" });
      j++;
    }
  }
  return lines;
}
