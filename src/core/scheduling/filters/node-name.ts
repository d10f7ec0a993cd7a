import { type JsonObject, stringAt } from "../../json.ts";
import { type Filter, SKIPS, unresolvable } from "../filter.ts";
import type { PreparedWorld } from "../prepared-world.ts";

const OTHER_NODE = unresolvable("NodeName", "node(s) didn't match the requested node name");

/** A pod that names its node runs only there. Since 1.37 the scheduler does not consider other nodes. */
export const NODE_NAME: Filter = {
  name: "NodeName",
  forPod: (pod: JsonObject, { nodes, minor }: PreparedWorld) => {
    const wanted = stringAt(pod, "spec", "nodeName") ?? "";
    if (wanted === "") return SKIPS;
    return {
      kind: "filters",
      ...(minor >= 37 ? { nodeNames: new Set([wanted]) } : {}),
      judge: (node) => (nodes.names[node] === wanted ? undefined : OTHER_NODE),
    };
  },
};
