import type { CompiledSelector, Requirement } from "../../../core/kubernetes/selectors/label-selector.ts";
import type {
  NodeTerm,
  NumericRequirement,
  PodPlacement,
} from "../../../core/kubernetes/selectors/node-selector.ts";
import { valuesOf } from "../../../core/kubernetes/selectors/values.ts";

type Given = Requirement | NumericRequirement;

/**
 * Whether every node that a pod's nodeSelector and required affinity can select, known or not, is one that the selector selects. Yes
 * only where the constraints say so literally; no where several of them would have to be put together.
 */
export function impliesSelector({ nodeSelector, terms }: PodPlacement, selector: CompiledSelector): boolean {
  if (selector.kind !== "requirements" || nodeSelector === undefined) return false;
  const given = new Map<string, Given[]>(
    nodeSelector.map(([key, value]) => [key, [{ key, operator: "In", values: new Set([value]) }]]),
  );
  const open = selector.requirements.filter((wanted) => !impliedBy(given.get(wanted.key) ?? [], wanted));
  if (open.length === 0) return true;
  const usable = usableTerms(terms);
  if (usable.length === 0) return false;
  return usable.every(({ labels }) => open.every((wanted) => impliedBy(labels, wanted)));
}

/** Whether a pod's nodeSelector or each of its terms keeps it off the selector's nodes, in words of the selector. */
export function excludesSelector(
  { nodeSelector = [], terms }: PodPlacement,
  selector: CompiledSelector,
): boolean {
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
export function oppositesOf(selector: CompiledSelector): Requirement[] {
  if (selector.kind !== "requirements") return [];
  return selector.requirements.map((one) => ({ ...one, operator: OPPOSITES[one.operator] }));
}

/** Terms that can match a node at all. */
export function usableTerms(
  terms: readonly NodeTerm[] | undefined,
): readonly Extract<NodeTerm, { readonly kind: "usable" }>[] {
  return (terms ?? []).filter((term) => term.kind === "usable");
}

/** Whether one of these requirements alone says what is wanted. */
export function impliedBy(given: readonly Given[], wanted: Requirement): boolean {
  for (const one of given) if (one.key === wanted.key && implies(one, wanted)) return true;
  return false;
}

/** Whether every label value, or its absence, that meets `given` meets `wanted`. */
function implies(given: Given, wanted: Requirement): boolean {
  if ("bound" in given) return wanted.operator === "Exists";
  switch (wanted.operator) {
    case "In":
      return given.operator === "In" && every(given.values, (value) => wanted.values.has(value));
    case "NotIn":
      if (given.operator === "In") return every(given.values, (value) => !wanted.values.has(value));
      if (given.operator === "NotIn") return every(wanted.values, (value) => given.values.has(value));
      return given.operator === "DoesNotExist";
    case "Exists":
      return given.operator === "In" || given.operator === "Exists";
    case "DoesNotExist":
      return given.operator === "DoesNotExist";
  }
}

function every(values: Iterable<string>, holds: (value: string) => boolean): boolean {
  for (const value of values) if (!holds(value)) return false;
  return true;
}
