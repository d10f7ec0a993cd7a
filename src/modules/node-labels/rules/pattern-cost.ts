/**
 * The cost of a pattern, known before the engine sees it: in steps of its program, with its counts expanded, each of
 * which takes some 25 µs to compile and to match for the first time. A Unicode class takes as long as 20 of them; a
 * character beyond ASCII may be the end of a range that the engine folds letter by letter, which takes as long as 160.
 */
const CLASS_STEPS = 20;
const RANGE_STEPS = 160;

/** The result of one pass over a pattern. */
export interface Scanned {
  readonly steps: number;
  /** The start of the innermost unclosed group. */
  readonly unclosed: number | undefined;
  /** The end of a group that was not opened. */
  readonly unopened: number | undefined;
}

interface Group {
  readonly begins: number;
  steps: number;
}

const COUNT = /\{(\d+)(?:,(\d*))?\}/y;
const POSIX = /\[:\^?\w+:\]/y;

/** Scans a pattern once, valid or not. If the cost is uncertain it overestimates. */
export function scan(source: string): Scanned {
  const groups: Group[] = [];
  let unopened: number | undefined;
  let top: Group = { begins: -1, steps: 0 };
  let dear = 0;
  /** Steps of the last item, which a count repeats. */
  let last = 0;
  const atom = (steps: number) => {
    last = steps;
    top.steps += steps;
  };
  for (let at = 0; at < source.length; ) {
    const character = source[at] ?? "";
    const end = endOfAtom(source, at);
    if (end > at + 1 || character > "\u007f") {
      dear += dearness(source.slice(at, end));
      // Quoted text has as many steps as characters.
      atom(source.startsWith("\\Q", at) ? end - at : 1);
    } else if (character === "(") {
      groups.push(top);
      top = { begins: at, steps: 1 };
      last = 0;
    } else if (character === ")") {
      const outer = groups.pop();
      if (outer === undefined) unopened ??= at;
      else {
        const { steps } = top;
        top = outer;
        atom(steps);
      }
    } else if (character === "{") {
      COUNT.lastIndex = at;
      const [text = "", least = "", most = ""] = COUNT.exec(source) ?? [];
      const more = last * Math.max(0, Number(most === "" ? least : most) - 1);
      top.steps += more;
      last += more;
      at += Math.max(1, text.length);
      continue;
    } else atom(1);
    at = end;
  }
  const unclosed = groups.length === 0 ? undefined : top.begins;
  const open = groups.reduce((sum, { steps }) => sum + steps, 0);
  return { steps: open + top.steps + dear, unclosed, unopened };
}

/** The end of the item that begins here: an escape, a quoted text or a class is one item. */
function endOfAtom(source: string, at: number): number {
  if (source.startsWith("\\Q", at)) {
    const end = source.indexOf("\\E", at + 2);
    return end < 0 ? source.length : end + 2;
  }
  if (source[at] === "\\") return at + 2;
  return source[at] === "[" ? endOfClass(source, at) : at + 1;
}

function endOfClass(source: string, from: number): number {
  let at = from + (source[from + 1] === "^" ? 2 : 1);
  // The first may be a bracket that closes nothing.
  if (source[at] === "]") at++;
  while (at < source.length && source[at] !== "]") {
    POSIX.lastIndex = at;
    const [named = ""] = POSIX.exec(source) ?? [];
    at += named !== "" ? named.length : source[at] === "\\" ? 2 : 1;
  }
  return Math.min(at + 1, source.length);
}

function dearness(atom: string): number {
  const classes = atom.match(/\\[pP]/g)?.length ?? 0;
  const ranges = atom.match(/\\x|[^\0-\u007f]/gu)?.length ?? 0;
  return classes * CLASS_STEPS + ranges * RANGE_STEPS;
}
