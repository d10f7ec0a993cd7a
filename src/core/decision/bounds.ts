/**
 * A line of a refusal: four times the API server's limit of a warning. A module's messages name a policy, a field and
 * two values.
 */
export const LINE_LENGTH = 1_024;

/** The message of a denial: eight of the longest lines, some forty usual ones. No terminal shows more. */
export const MESSAGE_LENGTH = 8_192;

/** A string of at most this many characters; a longer one ends in an ellipsis. */
export function truncate(text: string, longest: number): string {
  return text.length <= longest ? text : `${text.slice(0, longest - 1).toWellFormed()}…`;
}

/**
 * Lines as one message. Whole lines are left out if not all fit, and the last line counts them. One line alone may fill
 * the message.
 */
export function joinLines(lines: readonly string[]): string {
  const longest = lines.length === 1 ? MESSAGE_LENGTH : LINE_LENGTH;
  const shown: string[] = [];
  let length = 0;
  for (const line of lines) {
    const text = truncate(line, longest);
    length += text.length;
    if (length > MESSAGE_LENGTH) break;
    shown.push(text);
  }
  if (shown.length < lines.length) shown.push(`and ${lines.length - shown.length} more`);
  return shown.join("\n");
}
