import { at, isObject, type JsonObject, listAt, own } from "../../json.ts";
import { type Filter, SKIPS, unresolvable } from "../filter.ts";
import { placementMatcher } from "../node-matchers.ts";
import type { PreparedWorld } from "../prepared-world.ts";

const NO_MATCH = unresolvable("NodeAffinity", "node(s) didn't match Pod's node affinity/selector");
const CONFLICT = unresolvable("NodeAffinity", "pod affinity terms conflict");

/** nodeSelector and required node affinity. Terms that name nodes restrict the nodes that the scheduler considers. */
export const NODE_AFFINITY: Filter = {
  name: "NodeAffinity",
  forPod: (pod: JsonObject, { nodes }: PreparedWorld) => {
    const spec = own(pod, "spec");
    const required = at(spec, "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution");
    const selector = own(spec, "nodeSelector");
    const constrained = required !== undefined && required !== null;
    const selects = selector !== undefined && selector !== null;
    if (!constrained && (!selects || (isObject(selector) && Object.keys(selector).length === 0)))
      return SKIPS;
    const named = namedNodes(required ?? undefined);
    if (named?.size === 0) return CONFLICT;
    const matches = placementMatcher(spec, nodes);
    return {
      kind: "filters",
      ...(named === undefined ? {} : { nodeNames: named }),
      judge: (node) => (matches(node) ? undefined : NO_MATCH),
    };
  },
};

/** The nodes that the terms name, even if a term is partly unreadable; `undefined` if one of the terms names none. */
function namedNodes(required: JsonObject["required"]): Set<string> | undefined {
  const terms = listAt(required, "nodeSelectorTerms");
  const named = new Set<string>();
  for (const term of terms) {
    let names: Set<unknown> | undefined;
    for (const field of listAt(term, "matchFields")) {
      if (own(field, "key") !== "metadata.name" || own(field, "operator") !== "In") continue;
      const values = new Set<unknown>(listAt(field, "values"));
      names = names === undefined ? values : names.intersection(values);
    }
    if (names === undefined) return undefined;
    for (const name of names) if (typeof name === "string") named.add(name);
  }
  return terms.length === 0 ? undefined : named;
}
