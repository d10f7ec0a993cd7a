import type { Json } from "../../../src/core/json.ts";

/** A Kubernetes object in which some values are left to Helm. */
export type Node = null | boolean | number | string | readonly Node[] | NodeMap | Expression | When | Append;

export interface NodeMap {
  readonly [key: string]: Node;
}

/** A value that Helm computes: `scalar` on one line, `block` as YAML of any depth. */
export class Expression {
  readonly form: "scalar" | "block";
  readonly text: string;

  constructor(form: "scalar" | "block", text: string) {
    this.form = form;
    this.text = text;
  }
}

/** A field or an item that is rendered under a condition, once for each of a list (`range`), or from a value that is not empty (`with`). */
export class When {
  readonly keyword: "if" | "range" | "with";
  readonly condition: string;
  readonly node: Node;

  constructor(condition: string, node: Node, keyword: "if" | "range" | "with" = "if") {
    this.condition = condition;
    this.node = node;
    this.keyword = keyword;
  }
}

/** Items of a list value, after those that are written out. */
export class Append {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

export function scalar(text: string): Expression {
  return new Expression("scalar", text);
}

export function block(text: string): Expression {
  return new Expression("block", text);
}

export function isMap(node: Node | undefined): node is NodeMap {
  return (
    typeof node === "object" &&
    node !== null &&
    !Array.isArray(node) &&
    !(node instanceof Expression || node instanceof When || node instanceof Append)
  );
}

/** JSON is a node as it is; its own type also allows absent fields. */
export function asNode(json: Json): Node {
  return json as Node;
}
