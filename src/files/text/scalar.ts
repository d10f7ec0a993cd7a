import type { Json } from "../../core/json.ts";

/**
 * The meaning of an unquoted scalar for kubectl. kubectl reads YAML with a fork of go-yaml 2, which resolves scalars in
 * its own way between YAML 1.1 and 1.2, so its rules are written out here instead of using a schema of the YAML
 * library:
 *
 * - `y`, `n`, `yes`, `no`, `on`, `off` and `true`, `false`, each in three spellings, are booleans.
 * - Integers are read as Go reads literals: `0x1f`, `0o17`, `0b101`, and `0777` is octal. `_` may be between digits.
 *   `089` is not an octal number and becomes the float 89.
 * - Base 60 (`1:30`) is a string: go-yaml omits it on purpose.
 * - A timestamp stays a string, because the target is untyped.
 * - A float too large for 64 bits stays a string. Integers beyond 2^53 are rounded as by `JSON.parse`.
 */
export type Plain =
  | { readonly tag: "null"; readonly value: null }
  | { readonly tag: "bool"; readonly value: boolean }
  | { readonly tag: "int"; readonly value: number; readonly exact: bigint }
  | { readonly tag: "float"; readonly value: number }
  | { readonly tag: "str"; readonly value: string };

const WORDS: ReadonlyMap<string, Plain> = new Map([
  ...spellings(["y", "yes", "true", "on"], { tag: "bool", value: true }),
  ...spellings(["n", "no", "false", "off"], { tag: "bool", value: false }),
  ...spellings(["null"], { tag: "null", value: null }),
  ["", { tag: "null", value: null }] as const,
  ["~", { tag: "null", value: null }] as const,
  ...[".nan", ".NaN", ".NAN"].map((word) => [word, { tag: "float", value: Number.NaN }] as const),
  ...infinities("", Number.POSITIVE_INFINITY),
  ...infinities("+", Number.POSITIVE_INFINITY),
  ...infinities("-", Number.NEGATIVE_INFINITY),
]);

function spellings(words: readonly string[], meaning: Plain): (readonly [string, Plain])[] {
  return words.flatMap((word) => {
    const capital = word.charAt(0).toUpperCase() + word.slice(1);
    return [word, capital, word.toUpperCase()].map((spelling) => [spelling, meaning] as const);
  });
}

function infinities(sign: string, value: number): (readonly [string, Plain])[] {
  return [".inf", ".Inf", ".INF"].map((word) => [sign + word, { tag: "float", value }] as const);
}

const INTEGER = /^([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[oO]?([0-7]+)|0[bB]([01]+)|(0|[1-9][0-9]*))$/;
const FLOAT = /^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$/;

export function plainScalar(text: string): Plain {
  const word = WORDS.get(text);
  if (word !== undefined) return word;
  // Only these can begin a number; every other scalar, which is most, is a string.
  if (!/^[-+.0-9]/.test(text)) return { tag: "str", value: text };
  // A leading dot is read as a float directly, for which go-yaml does not remove underscores.
  const digits = text.startsWith(".") ? text : text.replaceAll("_", "");
  const integer = INTEGER.exec(digits);
  if (integer !== null) return wholeNumber(integer);
  if (FLOAT.test(digits)) {
    const value = Number(digits);
    if (Number.isFinite(value)) return { tag: "float", value };
  }
  return { tag: "str", value: text };
}

function wholeNumber([, sign, hex, octal, binary, decimal]: RegExpExecArray): Plain {
  let exact: bigint;
  if (hex !== undefined) exact = BigInt(`0x${hex}`);
  else if (octal !== undefined) exact = BigInt(`0o${octal}`);
  else if (binary !== undefined) exact = BigInt(`0b${binary}`);
  else exact = BigInt(decimal ?? "0");
  if (sign === "-") exact = -exact;
  return { tag: "int", value: Number(exact), exact };
}

/** A scalar with an explicit tag. `undefined` if the text does not match the tag. */
export function taggedScalar(tag: string, text: string): Json | undefined {
  const name = /^tag:yaml\.org,2002:(\w+)$/.exec(tag)?.[1];
  if (name === "binary") return binaryText(text);
  if (name !== "null" && name !== "bool" && name !== "int" && name !== "float") return text;
  const plain = plainScalar(text);
  if (plain.tag === name || (name === "float" && plain.tag === "int")) return plain.value;
  return undefined;
}

function binaryText(text: string): string | undefined {
  const compact = text.replace(/\s+/g, "");
  if (!/^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(compact)) return undefined;
  return Buffer.from(compact, "base64").toString("utf8");
}

/** The string form of a non-string key, as kubectl writes it into JSON. A null can't be a key. */
export function keyText(plain: Plain): string | undefined {
  if (plain.tag === "null") return undefined;
  if (plain.tag === "int") return plain.exact.toString();
  if (plain.tag === "float") return floatKey(plain.value);
  return String(plain.value);
}

/** Go's shortest form of a 32-bit float: an exponent of two digits or more, from 1e+06 on and below 1e-04. */
function floatKey(value: number): string {
  if (Number.isNaN(value)) return ".nan";
  if (!Number.isFinite(value)) return value > 0 ? ".inf" : "-.inf";
  const narrow = Math.fround(value);
  if (!Number.isFinite(narrow)) return value > 0 ? ".inf" : "-.inf";
  let shortest = String(narrow);
  for (let digits = 1; digits <= 9; digits++) {
    const candidate = narrow.toPrecision(digits);
    if (Math.fround(Number(candidate)) !== narrow) continue;
    shortest = candidate;
    break;
  }
  const [mantissa = "0", exponent = "0"] = Number(shortest).toExponential().split("e");
  const power = Number(exponent);
  if (power >= -4 && power < 6) return String(Number(shortest));
  const size = String(Math.abs(power)).padStart(2, "0");
  return `${mantissa}e${power < 0 ? "-" : "+"}${size}`;
}
