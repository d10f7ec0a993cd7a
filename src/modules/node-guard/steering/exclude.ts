import { type Json, type JsonObject, listAt } from "../../../core/json.ts";
import type { CompiledSelector, Requirement } from "../../../core/kubernetes/selectors/label-selector.ts";
import { compilePodPlacement, compileTerm } from "../../../core/kubernetes/selectors/node-selector.ts";
import { valuesOf } from "../../../core/kubernetes/selectors/values.ts";
import { impliedBy, usableTerms } from "../claims/implied.ts";

/** Schedulers evaluate every term for every node; nobody writes as many. */
const MOST_TERMS = 256;

/**
 * Required terms that match just what these match, less the nodes that the selector selects. Exact for every operator: a node is
 * outside a selector where it fails one of its requirements, and each requirement has an opposite. Idempotent. Empty terms match no node
 * and stay so: with a requirement they would match some.
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

/** Whether a pod's nodeSelector or each of its terms keeps it off the selector's nodes already, in words of the selector. */
export function excludesSelector(podSpec: Json | undefined, selector: CompiledSelector): boolean {
  const { nodeSelector = [], terms } = compilePodPlacement(podSpec);
  const opposites = oppositesOf(selector);
  const given = nodeSelector.map(
    ([key, value]): Requirement => ({ key, operator: "In", values: valuesOf([value]) }),
  );
  if (opposites.some((opposite) => impliedBy(given, opposite))) return true;
  const usable = usableTerms(terms);
  return (
    usable.length > 0 &&
    usable.every(({ labels }) => opposites.some((opposite) => impliedBy(labels, opposite)))
  );
}

const OPPOSITES = { In: "NotIn", NotIn: "In", Exists: "DoesNotExist", DoesNotExist: "Exists" } as const;

/** One of these holds for every node outside the selector, and none for a node in it. Nothing is outside of everything. */
function oppositesOf(selector: CompiledSelector): Requirement[] {
  if (selector.kind !== "requirements") return [];
  return selector.requirements.map((one) => ({ ...one, operator: OPPOSITES[one.operator] }));
}

/** Matches no node of the selector: it can match none at all, or one of its requirements says so. */
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
