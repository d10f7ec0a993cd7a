import { Append, Expression, isMap, type Node, type NodeMap, When } from "./node.ts";
import { STANDING_FOR } from "./standing-for.ts";

/** The text of a template that renders to this object. */
export function emit(node: NodeMap): string {
  return `${fields(node, 0).join("\n")}\n`;
}

/** Words that YAML 1.1 does not read as a string are quoted, as is everything with a special character of YAML. */
const PLAIN = /^(?!(?:y|n|yes|no|on|off|true|false|null)$)[A-Za-z/][A-Za-z0-9._/-]*$/i;

function scalarText(value: string | number | boolean | null): string {
  if (typeof value !== "string") return String(value);
  for (const [stand, expression] of STANDING_FOR) {
    if (value === stand) return `{{ ${expression} | toJson }}`;
    // The name of a namespace has no character that a quoted string would need to escape.
    if (value.includes(stand)) return JSON.stringify(value).replaceAll(stand, `{{ ${expression} }}`);
  }
  return PLAIN.test(value) ? value : JSON.stringify(value);
}

function fields(map: NodeMap, depth: number): string[] {
  return Object.entries(map).flatMap(([key, node]) => field(key, node, depth));
}

function field(key: string, node: Node, depth: number): string[] {
  const pad = "  ".repeat(depth);
  if (node instanceof When) return wrapped(node, depth, (inner) => field(key, inner, depth));
  const name = scalarText(key);
  if (node instanceof Expression) {
    return node.form === "scalar"
      ? [`${pad}${name}: {{ ${node.text} }}`]
      : [`${pad}${name}:`, `${pad}  {{- ${node.text} | nindent ${2 * (depth + 1)} }}`];
  }
  if (Array.isArray(node) || isMap(node)) {
    const parts: Node[] = Array.isArray(node) ? [...node] : Object.values(node as NodeMap);
    if (parts.length === 0) return [`${pad}${name}: ${Array.isArray(node) ? "[]" : "{}"}`];
    const lines = Array.isArray(node)
      ? node.flatMap((item: Node) => listItem(item, depth + 1))
      : fields(node as NodeMap, depth + 1);
    // An empty list would be null, which is not the same as absent for all readers.
    const any = parts.map(conditionOf);
    const whole = [`${pad}${name}:`, ...lines];
    return any.every((one) => one !== undefined)
      ? [`${pad}{{- if ${either(any)} }}`, ...whole, `${pad}{{- end }}`]
      : whole;
  }
  if (node instanceof Append) throw new Error(`${key}: only a list can be appended to`);
  return [`${pad}${name}: ${scalarText(node as string | number | boolean | null)}`];
}

function listItem(node: Node, depth: number): string[] {
  const pad = "  ".repeat(depth);
  if (node instanceof When) return wrapped(node, depth, (inner) => listItem(inner, depth));
  if (node instanceof Append)
    return [
      `${pad}{{- with ${node.text} }}`,
      `${pad}{{- toYaml . | nindent ${2 * depth} }}`,
      `${pad}{{- end }}`,
    ];
  if (node instanceof Expression) {
    if (node.form === "block") throw new Error("an item of a list can't be a block");
    return [`${pad}- {{ ${node.text} }}`];
  }
  if (isMap(node)) {
    const [first, ...rest] = fields(node, depth + 1);
    if (first === undefined) return [`${pad}- {}`];
    if (first.trimStart().startsWith("{{-"))
      throw new Error("the first field of an item can't be conditional");
    return [`${pad}- ${first.slice(pad.length + 2)}`, ...rest];
  }
  if (Array.isArray(node)) throw new Error("a list in a list is not needed");
  return [`${pad}- ${scalarText(node as string | number | boolean | null)}`];
}

function wrapped(
  { keyword, condition, node }: When,
  depth: number,
  inner: (node: Node) => string[],
): string[] {
  const pad = "  ".repeat(depth);
  return [`${pad}{{- ${keyword} ${condition} }}`, ...inner(node), `${pad}{{- end }}`];
}

function conditionOf(node: Node): string | undefined {
  if (node instanceof When) return node.condition;
  return node instanceof Append ? node.text : undefined;
}

function either(conditions: readonly (string | undefined)[]): string {
  const all = [...new Set(conditions)].map((one) => (/^\S+$/.test(one ?? "") ? one : `(${one})`));
  return all.length === 1 ? (conditions[0] ?? "") : `or ${all.join(" ")}`;
}
