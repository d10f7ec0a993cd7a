/** The parts of a TypeScript file that contain words. */
export interface Token {
  readonly kind: "identifier" | "string" | "comment";
  readonly text: string;
  readonly line: number;
}

/** A `/` after one of these begins a regular expression; after anything else it divides. */
const BEFORE_PATTERN = /(?:^|[(,=:[!&|?{};+\-*%~^<>]|\breturn|\btypeof|\bcase)\s*$/;

/** Splits a file into identifiers, strings (each part of a template on its own) and comments. Numbers and patterns are dropped. */
export function tokensOf(source: string): Token[] {
  const tokens: Token[] = [];
  /** The number of open braces in each open template. */
  const templates: number[] = [];
  let at = 0;
  let line = 1;
  const take = (kind: Token["kind"] | undefined, end: number): void => {
    const text = source.slice(at, end);
    if (kind !== undefined) tokens.push({ kind, text, line });
    for (const character of text) if (character === "\n") line++;
    at = end;
  };
  while (at < source.length) {
    const here = source[at] ?? "";
    const rest = source.slice(at, at + 2);
    if (rest === "//") take("comment", endOf(source, "\n", at));
    else if (rest === "/*") take("comment", endOf(source, "*/", at) + 2);
    else if (here === '"' || here === "'") take("string", closing(source, at, here));
    else if (here === "/" && BEFORE_PATTERN.test(source.slice(Math.max(0, at - 40), at)))
      take(undefined, patternEnd(source, at));
    else if (here === "`" || (here === "}" && templates.at(-1) === 0)) {
      if (here === "}") templates.pop();
      const end = templateEnd(source, at + 1);
      if (source.startsWith("${", end - 2)) templates.push(0);
      take("string", end);
    } else if (/[A-Za-z_$#]/.test(here))
      take("identifier", at + (/^[\w$#]+/.exec(source.slice(at, at + 200))?.[0].length ?? 1));
    else if (/[0-9]/.test(here))
      take(undefined, at + (/^[\w.]+/.exec(source.slice(at, at + 80))?.[0].length ?? 1));
    else {
      const open = templates.length - 1;
      if (open >= 0 && here === "{") templates[open] = (templates[open] ?? 0) + 1;
      if (open >= 0 && here === "}") templates[open] = (templates[open] ?? 0) - 1;
      take(undefined, at + 1);
    }
  }
  return tokens;
}

function endOf(source: string, mark: string, from: number): number {
  const end = source.indexOf(mark, from);
  return end === -1 ? source.length : end;
}

function closing(source: string, from: number, quote: string): number {
  let end = from + 1;
  while (end < source.length && source[end] !== quote) end += source[end] === "\\" ? 2 : 1;
  return end + 1;
}

function patternEnd(source: string, from: number): number {
  let end = from + 1;
  for (let set = false; end < source.length && (set || source[end] !== "/"); end++) {
    if (source[end] === "\\") end++;
    else if (source[end] === "[") set = true;
    else if (source[end] === "]") set = false;
  }
  return end + 1;
}

/** The end of a template's part: behind the closing quote, or behind `${`. */
function templateEnd(source: string, from: number): number {
  let end = from;
  while (end < source.length && source[end] !== "`" && !source.startsWith("${", end))
    end += source[end] === "\\" ? 2 : 1;
  return end + (source[end] === "`" ? 1 : 2);
}

/** `placeUpdate_V2` → place, update, v2; `HTTPServer` → http, server. */
export function wordsIn(text: string): string[] {
  return text
    .replace(/([a-z0-9])([A-Z])/g, "$1 $2")
    .replace(/([A-Z]+)([A-Z][a-z])/g, "$1 $2")
    .toLowerCase()
    .split(/[^a-z0-9']+/)
    .filter((word) => word !== "");
}
