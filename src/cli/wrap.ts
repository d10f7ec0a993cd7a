const WIDTH = 80;

/** A paragraph in lines of at most 80 characters, or of `width`. */
export function wrap(paragraph: string, width: number = WIDTH): string {
  const lines: string[] = [];
  let line = "";
  for (const word of paragraph.split(" ")) {
    if (line !== "" && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else line = line === "" ? word : `${line} ${word}`;
  }
  return [...lines, line].join("\n");
}

/** Fewer columns than this beside the first words are not worth the alignment. */
const NARROWEST = 24;

/** The lines of `lead` and `text`. With a width, further lines begin below the text, or below the lead where that is too narrow. */
export function hung(lead: string, text: string, width: number | undefined): string[] {
  if (width === undefined || lead.length + text.length <= width) return [`${lead}${text}`];
  const indented = (columns: number) =>
    wrap(text, Math.max(NARROWEST, width - columns))
      .split("\n")
      .map((line) => `${" ".repeat(columns)}${line}`);
  if (width - lead.length < NARROWEST) return [lead.trimEnd(), ...indented(6)];
  const [first = "", ...more] = indented(lead.length);
  return [`${lead}${first.slice(lead.length)}`, ...more];
}
