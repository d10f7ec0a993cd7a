import { Document, visit } from "yaml";
import { plainScalar } from "../../files/text/scalar.ts";

/** Line breaks of YAML 1.1, characters that YAML does not allow, and bidirectional overrides. */
const ODD = /[\x00-\x08\x0b-\x1f\x7f-\xa0\u2028-\u202e\u2066-\u2069\ufeff\ufffe\uffff]/;

/** YAML that kubectl decodes to the same value: strings that would decode as booleans or numbers are quoted. */
export function yamlText(value: unknown): string {
  const document = new Document(value, { schema: "core", aliasDuplicateObjects: false });
  visit(document, {
    Scalar: (role, node) => {
      const text = node.value;
      if (typeof text !== "string") return;
      if (role !== "key" && isBlock(text)) node.type = "BLOCK_LITERAL";
      else if (misread(text)) node.type = "QUOTE_DOUBLE";
    },
  });
  // All of these are in double quotes, where escapes have the same meaning.
  const escaped = (odd: string) => `\\u${odd.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return document.toString({ lineWidth: 0 }).trimEnd().replaceAll(new RegExp(ODD, "g"), escaped);
}

/** Several lines that start and end with text: safe as a literal block. */
function isBlock(text: string): boolean {
  if (!text.includes("\n") || ODD.test(text)) return false;
  const body = text.endsWith("\n") ? text.slice(0, -1) : text;
  return body !== "" && (body[0] ?? "").trim() !== "" && (body.at(-1) ?? "").trim() !== "";
}

/** The library quotes for YAML 1.2; kubectl decodes more words as booleans and numbers. */
function misread(text: string): boolean {
  if (text === "<<" || ODD.test(text) || text.trim() !== text || text.includes("\n")) return true;
  return plainScalar(text).tag !== "str";
}

/** Several documents as one stream. */
export function yamlDocuments(values: readonly unknown[]): string {
  return values.map(yamlText).join("\n---\n");
}
