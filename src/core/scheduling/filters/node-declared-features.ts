import { at, type Json, type JsonObject, listAt, own } from "../../json.ts";
import { type Filter, SKIPS, unresolvable } from "../filter.ts";
import { columnOf } from "../node-table.ts";
import type { PreparedWorld } from "../prepared-world.ts";

const NOT_DECLARED = unresolvable("NodeDeclaredFeatures", "node(s) didn't match Pod's required features");

/** Features of a kubelet that a pod may need, and the release whose scheduler requires them. */
const FEATURES: readonly {
  readonly name: string;
  readonly since: number;
  readonly needs: (pod: JsonObject) => boolean;
}[] = [
  {
    name: "RestartAllContainersOnContainerExits",
    since: 36,
    needs: (pod) =>
      containersOf(pod, ["containers", "initContainers"]).some((container) =>
        listAt(container, "restartPolicyRules").some(
          (rule) => own(rule, "action") === "RestartAllContainers",
        ),
      ),
  },
  {
    name: "UserNamespacesHostNetworkSupport",
    since: 36,
    needs: (pod) => at(pod, "spec", "hostNetwork") === true && at(pod, "spec", "hostUsers") === false,
  },
  {
    name: "VolumeBindMountOptions",
    since: 37,
    needs: (pod) =>
      containersOf(pod, ["containers", "initContainers", "ephemeralContainers"]).some((container) =>
        listAt(container, "volumeMounts").some((mount) => listAt(mount, "bindMountOptions").length > 0),
      ),
  },
];

function containersOf(pod: JsonObject, fields: readonly string[]): readonly Json[] {
  return fields.flatMap((field) => listAt(pod, "spec", field));
}

export const NODE_DECLARED_FEATURES: Filter = {
  name: "NodeDeclaredFeatures",
  forPod: (pod: JsonObject, { nodes, minor }: PreparedWorld) => {
    const needed = FEATURES.filter(({ since, needs }) => minor >= since && needs(pod));
    if (needed.length === 0) return SKIPS;
    const { classes, values } = columnOf(
      nodes.objects,
      (node) => new Set(listAt(node, "status", "declaredFeatures")),
      (declared) => JSON.stringify([...declared]),
    );
    const outcomes = values.map((declared) =>
      needed.every(({ name }) => declared.has(name)) ? undefined : NOT_DECLARED,
    );
    return { kind: "filters", judge: (node) => outcomes[classes[node] ?? 0] };
  },
};
