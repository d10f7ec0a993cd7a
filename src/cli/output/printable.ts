/**
 * Text from a manifest as a terminal may get it: on one line, and with nothing in it that the terminal would obey or that would
 * turn the direction of what follows. A name can hold anything, as nobody has checked it yet.
 */
export function printable(text: string): string {
  return text.replace(/\s*\n\s*/g, " ").replace(/[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]/g, "\u00b7");
}
