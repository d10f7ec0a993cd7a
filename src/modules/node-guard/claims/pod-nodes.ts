import { at, isObject, type Json, type JsonObject, listAt, own } from "../../../core/json.ts";
import { labelsOf, nameOf } from "../../../core/kubernetes/object.ts";
import { isBoundSpec, isGatedSpec } from "../../../core/kubernetes/pod-state.ts";
import type { CompiledSelector, Requirement } from "../../../core/kubernetes/selectors/label-selector.ts";
import { impliedBy } from "../../../core/kubernetes/selectors/node-requirements.ts";
import {
  compilePodPlacement,
  matchesPlacement,
  type NodeTerm,
  type PodPlacement,
} from "../../../core/kubernetes/selectors/node-selector.ts";
import { valuesOf } from "../../../core/kubernetes/selectors/values.ts";
import { describeTaint, taintsOf } from "../../../core/kubernetes/taints.ts";
import { toleratesAll } from "../../../core/kubernetes/tolerations.ts";
import type { Path } from "../../../core/path.ts";

/**
 * Tolerations, keys, terms, requirements and values that are read of one pod: they compile in 2 ms, and again for each
 * of 16 groups if a pod is steered off all of them. Pods of real clusters have some ten; a list of hosts has a few
 * hundred.
 */
export const MOST_PARTS = 2_000;

/** Requirements and tolerations times nodes: this many take 5 ms, and a review makes at most four rounds of them. */
const MOST_COMPARISONS = 150_000;

/**
 * Taints that Kubernetes itself sets and removes by the state of a node. A pod that is pending while a node is cordoned
 * is still pending when the node comes back.
 */
const PASSING_TAINTS = ["node.kubernetes.io/", "node.cloudprovider.kubernetes.io/"];

const NOTHING: PodPlacement = { nodeSelector: [], terms: undefined };

/** The node constraints of a pod's spec. Read once per review, and not at all if too large. */
export class PodNodes {
  /** The spec has more constraints than are read: any node might accept the pod, as far as usher knows. */
  readonly tooLarge: boolean;
  readonly placement: PodPlacement;
  readonly #tolerations: readonly Json[];
  /** Requirements and tolerations: the cost of comparing one node. */
  readonly #compared: number;
  /** Nodes of a group are mostly tainted alike. */
  readonly #tolerated = new Map<string, boolean>();

  constructor(podSpec: Json | undefined) {
    this.tooLarge = isTooLarge(podSpec);
    this.placement = this.tooLarge ? NOTHING : compilePodPlacement(podSpec);
    this.#tolerations = this.tooLarge ? [] : listAt(podSpec, "tolerations");
    const { nodeSelector = [], terms } = this.placement;
    this.#compared = usableTerms(terms).reduce(
      (sum, { labels, names }) => sum + labels.length + names.length,
      nodeSelector.length + this.#tolerations.length,
    );
  }

  /** Whether the pod has any node constraints. */
  get constrained(): boolean {
    return this.placement.terms !== undefined || this.placement.nodeSelector?.length !== 0;
  }

  /** Whether comparing the pod with each of `nodes` nodes takes too long. */
  exceeds(nodes: number): boolean {
    return this.tooLarge || this.#compared * nodes > MOST_COMPARISONS;
  }

  /** By nodeSelector and required affinity. Taints do not count. */
  selects(node: JsonObject): boolean {
    return matchesPlacement(this.placement, { name: nameOf(node), labels: labelsOf(node) });
  }

  /** Whether a scheduler considers the node for the pod, or will once the node is well. */
  canRunOn(node: JsonObject): boolean {
    return this.#tolerates(node) && this.selects(node);
  }

  #tolerates(node: JsonObject): boolean {
    const taints = taintsOf(node).filter(({ key }) => !PASSING_TAINTS.some((one) => key.startsWith(one)));
    if (taints.length === 0) return true;
    const text = taints.map(describeTaint).join();
    const known = this.#tolerated.get(text) ?? toleratesAll(this.#tolerations, taints);
    this.#tolerated.set(text, known);
    return known;
  }
}

/** The part of a stored spec that a scheduler may have seen: none if the pod had a node or was gated. */
export function seenBefore(stored: Json | undefined): PodNodes | undefined {
  if (stored === undefined || isBoundSpec(stored) || isGatedSpec(stored)) return undefined;
  return new PodNodes(stored);
}

/** Whether a spec has too many node constraints; counted without reading it, and no further than necessary. */
function isTooLarge(podSpec: Json | undefined): boolean {
  const selector = own(podSpec, "nodeSelector");
  let parts = listAt(podSpec, "tolerations").length;
  if (isObject(selector)) parts += Object.keys(selector).length;
  for (const term of termsOf(podSpec) ?? []) {
    parts++;
    for (const list of ["matchExpressions", "matchFields"])
      for (const requirement of listAt(term, list)) {
        parts += 1 + listAt(requirement, "values").length;
        if (parts > MOST_PARTS) return true;
      }
  }
  return parts > MOST_PARTS;
}

/** The path of a pod's required node affinity. */
export const REQUIRED: Path = ["affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"];

export const REQUIRED_TERMS: Path = [...REQUIRED, "nodeSelectorTerms"];

/** The required terms of a pod's spec. `undefined`: the pod requires no affinity, so that any node would do. */
export function termsOf(podSpec: Json | undefined): readonly Json[] | undefined {
  const required = at(podSpec, ...REQUIRED);
  if (required === undefined || required === null) return undefined;
  const terms = at(required, "nodeSelectorTerms");
  return Array.isArray(terms) ? terms : [];
}

/**
 * Whether every node that a pod's nodeSelector and required affinity can select, known or not, is one that the selector
 * selects. True only if the constraints state it literally; false if several of them would have to be combined.
 */
export function impliesSelector({ nodeSelector, terms }: PodPlacement, selector: CompiledSelector): boolean {
  if (selector.kind !== "requirements" || nodeSelector === undefined) return false;
  const given = new Map<string, Requirement[]>(
    nodeSelector.map(([key, value]) => [key, [{ key, operator: "In", values: new Set([value]) }]]),
  );
  const open = selector.requirements.filter((wanted) => !impliedBy(given.get(wanted.key) ?? [], wanted));
  if (open.length === 0) return true;
  const usable = usableTerms(terms);
  if (usable.length === 0) return false;
  return usable.every(({ labels }) => open.every((wanted) => impliedBy(labels, wanted)));
}

/** Whether a pod's nodeSelector or each of its terms keeps it off the selector's nodes, in the selector's terms. */
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
