import type { JsonObject } from "../../json.ts";
import { type Filter, resolvable, SKIPS, unknown } from "../filter.ts";
import { ANY_IP, type HostPort, hostPortsOf } from "../placed-pods.ts";
import type { PreparedWorld } from "../prepared-world.ts";

const IN_USE = resolvable("NodePorts", "node(s) didn't have free ports for the requested pod ports");

export const NODE_PORTS: Filter = {
  name: "NodePorts",
  forPod: (pod: JsonObject, { placed }: PreparedWorld) => {
    const wanted = hostPortsOf(pod);
    if (wanted.length === 0) return SKIPS;
    if (placed === undefined) return unknown("NodePorts", "the pods of the nodes are not in the view");
    const { ports } = placed;
    return {
      kind: "filters",
      judge: (node) => {
        const used = ports.get(node) ?? [];
        return wanted.some((port) => used.some((other) => conflict(port, other))) ? IN_USE : undefined;
      },
    };
  },
};

/** One port can be used twice on two addresses; 0.0.0.0 is every address. */
function conflict(a: HostPort, b: HostPort): boolean {
  return (
    a.port === b.port && a.protocol === b.protocol && (a.ip === b.ip || a.ip === ANY_IP || b.ip === ANY_IP)
  );
}
