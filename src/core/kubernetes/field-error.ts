import type { Path } from "../path.ts";

/** A problem in a user's input: a message, and its path. */
export interface FieldError {
  readonly path: Path;
  readonly message: string;
}

/** Enough to recognize a string in a message; names end at 253, so a longer one is not a name anyway. */
const SHOWN_CHARACTERS = 80;

/** A string as quoted in a message: control characters are escaped, so that no log line or header breaks. */
export function quoted(text: string): string {
  return JSON.stringify(text.length > SHOWN_CHARACTERS ? `${text.slice(0, SHOWN_CHARACTERS)}…` : text);
}

/** The type of a JSON value, in words. */
export function typeName(value: unknown): string {
  if (value === undefined) return "absent";
  if (value === null) return "null";
  if (Array.isArray(value)) return "a list";
  if (typeof value === "object") return "an object";
  if (typeof value === "boolean") return "a boolean";
  return typeof value === "string" ? "a string" : "a number";
}
