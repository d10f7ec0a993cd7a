const MILLISECONDS: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3, // U+00B5, as Go prints it
  μs: 1e-3, // U+03BC, which Go reads as well
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
};

const PART = /(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)/y;

/** Milliseconds of a duration in Go's format (`10s`, `1m30s`, `1.5s`, `500ms`), or `undefined` for anything else. */
export function parseDuration(text: string): number | undefined {
  const negative = text.startsWith("-");
  let position = negative || text.startsWith("+") ? 1 : 0;
  // The only duration that Go reads without a unit.
  if (text.slice(position) === "0") return 0;
  if (position === text.length) return undefined;
  let total = 0;
  while (position < text.length) {
    PART.lastIndex = position;
    const match = PART.exec(text);
    if (match === null) return undefined;
    total += Number(match[1]) * (MILLISECONDS[match[2] ?? ""] ?? Number.NaN);
    position = PART.lastIndex;
  }
  if (!Number.isFinite(total)) return undefined;
  return negative ? -total : total;
}
