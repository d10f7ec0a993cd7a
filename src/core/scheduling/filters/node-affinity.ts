import { at, isObject, type JsonObject, own } from "../../json.ts";
import { labelsOf } from "../../kubernetes/object.ts";
import {
  compilePodPlacement,
  matchesPlacement,
  type NodeTerm,
} from "../../kubernetes/selectors/node-selector.ts";
import { type Filter, SKIPS, unresolvable } from "../filter.ts";
import type { PreparedWorld } from "../prepared-world.ts";

const NO_MATCH = unresolvable("NodeAffinity", "node(s) didn't match Pod's node affinity/selector");
const CONFLICT = unresolvable("NodeAffinity", "pod affinity terms conflict");

/** nodeSelector and required node affinity. Terms that name nodes narrow the nodes that the scheduler looks at. */
export const NODE_AFFINITY: Filter = {
  name: "NodeAffinity",
  forPod: (pod: JsonObject, { nodes }: PreparedWorld) => {
    const spec = own(pod, "spec");
    const required = at(spec, "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution");
    const selector = own(spec, "nodeSelector");
    const constrained = required !== undefined && required !== null;
    if (!constrained && (!isObject(selector) || Object.keys(selector).length === 0)) return SKIPS;
    const placement = compilePodPlacement(spec);
    const named = namedNodes(placement.terms ?? []);
    if (named?.size === 0) return CONFLICT;
    return {
      kind: "filters",
      ...(named === undefined ? {} : { nodeNames: named }),
      judge: (node) =>
        matchesPlacement(placement, {
          name: nodes.names[node] ?? "",
          labels: labelsOf(nodes.objects[node] ?? {}),
        })
          ? undefined
          : NO_MATCH,
    };
  },
};

/** The nodes that the terms name; `undefined` where one of the terms names none. */
function namedNodes(terms: readonly NodeTerm[]): Set<string> | undefined {
  const named = new Set<string>();
  for (const term of terms) {
    const wanted = term.kind === "usable" ? term.names.filter(({ operator }) => operator === "In") : [];
    const [first] = wanted;
    if (first === undefined) return undefined;
    if (wanted.every(({ name }) => name === first.name)) named.add(first.name);
  }
  return terms.length === 0 ? undefined : named;
}
