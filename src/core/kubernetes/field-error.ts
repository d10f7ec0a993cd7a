import type { Path } from "../path.ts";

/** Something wrong in what a user wrote: a sentence, and the place it is about. */
export interface FieldError {
  readonly path: Path;
  readonly message: string;
}

/** Enough to recognise a text in a message; names end at 253, so what is longer is not a name anyway. */
const SHOWN_CHARACTERS = 80;

/** A text as a message quotes it: control characters escaped, so that no log line or header breaks. */
export function quoted(text: string): string {
  return JSON.stringify(text.length > SHOWN_CHARACTERS ? `${text.slice(0, SHOWN_CHARACTERS)}…` : text);
}

/** What a JSON value is, in words. */
export function typeName(value: unknown): string {
  if (value === undefined) return "absent";
  if (value === null) return "null";
  if (Array.isArray(value)) return "a list";
  if (typeof value === "object") return "an object";
  if (typeof value === "boolean") return "a boolean";
  return typeof value === "string" ? "a string" : "a number";
}
