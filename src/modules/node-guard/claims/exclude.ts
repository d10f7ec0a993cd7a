import { type Json, type JsonObject, listAt } from "../../../core/json.ts";
import type { CompiledSelector, Requirement } from "../../../core/kubernetes/selectors/label-selector.ts";
import { impliedBy } from "../../../core/kubernetes/selectors/node-requirements.ts";
import { compileTerm } from "../../../core/kubernetes/selectors/node-selector.ts";
import { oppositesOf } from "./pod-nodes.ts";

/** Schedulers evaluate every term for every node; real pods have far fewer. */
const MOST_TERMS = 256;

/**
 * Required terms that match the same nodes as these, except those that the selector selects. Exact for every operator:
 * a node is outside a selector if it fails one of its requirements, and each requirement has an opposite. Idempotent.
 * Empty terms match no node and stay so: with a requirement they would match some.
 */
export function excludeSelector(
  terms: readonly Json[] | undefined,
  selector: CompiledSelector,
): readonly Json[] | "unchanged" | "too many" {
  const opposites = oppositesOf(selector);
  if (opposites.length === 0) return "unchanged";
  const added = opposites.map(expressionOf);
  if (terms === undefined) return added.map((expression) => ({ matchExpressions: [expression] }));
  const excluded = terms.map((term) =>
    isOutside(term, opposites) ? [term] : added.map((one) => withExpression(term, one)),
  );
  if (excluded.every((made, i) => made.length === 1 && made[0] === terms[i])) return "unchanged";
  const made = excluded.flat();
  return made.length > MOST_TERMS ? "too many" : made;
}

/**
 * Required terms that match the same nodes as these, except the given nodes: the same number of terms, each with more
 * requirements. Idempotent. Nodes that join later are not excluded.
 */
export function excludeNodes(
  terms: readonly Json[],
  selector: CompiledSelector,
  names: readonly string[],
): readonly Json[] | "too many" {
  if (terms.length * names.length > MOST_TERMS) return "too many";
  const opposites = oppositesOf(selector);
  const added = names.map((name) => ({ key: "metadata.name", operator: "NotIn", values: [name] }));
  return terms.map((term) =>
    isOutside(term, opposites)
      ? term
      : { ...(term as JsonObject), matchFields: [...listAt(term, "matchFields"), ...added] },
  );
}

/** Matches no node of the selector: it is unsatisfiable, or one of its requirements excludes the selector. */
function isOutside(term: Json, opposites: readonly Requirement[]): boolean {
  const compiled = compileTerm(term, [], []);
  return compiled.kind !== "usable" || opposites.some((opposite) => impliedBy(compiled.labels, opposite));
}

function expressionOf({ key, operator, values }: Requirement): JsonObject {
  const list = [...values].sort();
  return { key, operator, ...(list.length === 0 ? {} : { values: list }) };
}

function withExpression(term: Json, expression: JsonObject): JsonObject {
  return { ...(term as JsonObject), matchExpressions: [...listAt(term, "matchExpressions"), expression] };
}
