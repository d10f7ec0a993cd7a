/**
 * Go's JSON decoder, and with it the API server, refuses more than 10,000 levels: what is deeper did not come from one. V8
 * parses 4 million levels, but takes 1.7 s and 350 MiB for it, and everyone else waits.
 */
export const NESTING_LIMIT = 10_000;

/** A body below this can't be deep enough to hurt, so nearly all bodies are spared the look. */
const NESTING_UNCHECKED_BYTES = 64 * 1024;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** Whether the brackets of a JSON text go deeper than the limit. The text need not be valid: the parser judges that. */
export function tooDeep(bytes: Uint8Array): boolean {
  if (bytes.length < NESTING_UNCHECKED_BYTES) return false;
  let depth = 0;
  let quoted = false;
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i];
    if (quoted) {
      if (byte === BACKSLASH) i++;
      else if (byte === QUOTE) quoted = false;
    } else if (byte === QUOTE) quoted = true;
    else if (byte === 0x7b || byte === 0x5b) {
      if (++depth > NESTING_LIMIT) return true;
    } else if (byte === 0x7d || byte === 0x5d) depth--;
  }
  return false;
}
