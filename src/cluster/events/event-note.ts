/** The API server refuses a longer note. It counts the bytes of UTF-8, not characters. */
const LONGEST_BYTES = 1_024;

const CUT = "…";

/** A message as the note of an Event: what is too long is cut at the end of a character. */
export function noteOf(message: string): string {
  if (Buffer.byteLength(message) <= LONGEST_BYTES) return message;
  // What is written are whole characters only.
  const room = new Uint8Array(LONGEST_BYTES - Buffer.byteLength(CUT));
  return message.slice(0, new TextEncoder().encodeInto(message, room).read) + CUT;
}
