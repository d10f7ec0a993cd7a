/**
 * Text of a manifest that is safe to print: on one line, without control characters, escape sequences and bidirectional overrides. Names
 * are not validated yet, so they may contain anything.
 */
export function printable(text: string): string {
  return text.replace(/\s*\n\s*/g, " ").replace(/[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]/g, "\u00b7");
}
