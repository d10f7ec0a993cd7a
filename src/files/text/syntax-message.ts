/** What to say of the library's errors, in words that say what to do. What is not here is said in the library's own. */
const SENTENCES: Readonly<Record<string, { readonly message: string; readonly hint?: string }>> = {
  TAB_AS_INDENT: { message: "tabs can't indent YAML", hint: "use spaces" },
  BAD_INDENT: { message: "inconsistent indentation" },
  MISSING_CHAR: { message: "a bracket, quote, comma or colon is missing here" },
  MULTILINE_IMPLICIT_KEY: { message: "a key must be on one line", hint: 'is a ":" missing?' },
  BLOCK_AS_IMPLICIT_KEY: {
    message: "a value and a nested map can't be on one line",
    hint: "put strings with a colon in quotes",
  },
  BLOCK_IN_FLOW: { message: "inside brackets, lists and maps need brackets too" },
  BAD_DQ_ESCAPE: {
    message: "invalid escape sequence in a double-quoted string",
    hint: "write \\\\ for a backslash",
  },
};

export function syntaxMessage(code: string, message: string): { message: string; hint?: string } {
  const known = Object.hasOwn(SENTENCES, code) ? SENTENCES[code] : undefined;
  if (known !== undefined) return known;
  return { message: message.charAt(0).toLowerCase() + message.slice(1) };
}
