import fc from "fast-check";
import { expect, test } from "vitest";
import {
  askGuard,
  byLabel,
  byName,
  type Cluster,
  CONTROL_PLANE_LABEL,
  controlPlaneNode,
  DAEMON_SET_CONTROLLER,
  GROUP,
  MALLORY,
  podOf,
  required,
  TAINT,
  user,
  worker,
} from "../../../../test/builders/guard.ts";
import { matchesPodPlacement } from "../../../../test/builders/pod.ts";
import { requestFor } from "../../../../test/builders/request.ts";
import type { AdmissionRequest, UserInfo } from "../../../core/decision/request.ts";
import { at, type Json, type JsonObject, listAt } from "../../../core/json.ts";
import { labelsOf, nameOf } from "../../../core/kubernetes/object.ts";
import { isBoundSpec, isGatedSpec } from "../../../core/kubernetes/pod-state.ts";
import { taintsOf } from "../../../core/kubernetes/taints.ts";
import { toleratesAll } from "../../../core/kubernetes/tolerations.ts";

// No sequence of creates and updates by a tenant leaves a pod that waits and that a scheduler would try on a protected node.

const CORDON = { key: "node.kubernetes.io/unschedulable", effect: "NoSchedule" };
const GPU = {
  name: "Gpu",
  mode: "Enable",
  labelSelector: { matchLabels: { gpu: "yes" }, matchExpressions: [{ key: "zone", operator: "Exists" }] },
};
const NODES: readonly JsonObject[] = [
  controlPlaneNode("cp-0", { zone: "a" }),
  controlPlaneNode("cp-1", { zone: "b" }, [TAINT, { key: "other", effect: "NoSchedule" }]),
  controlPlaneNode("cp-2", { zone: "b" }, []),
  worker("gpu-0", { zone: "a", gpu: "yes" }),
  worker("w-0", { zone: "a" }),
  worker("w-1", { zone: "b", gpu: "no" }),
];
const PROTECTED = new Set(["cp-0", "cp-1", "cp-2", "gpu-0"]);

function cordoned(node: JsonObject): JsonObject {
  const taints = [...listAt(node, "spec", "taints"), CORDON];
  return { ...node, spec: { ...(node["spec"] as JsonObject), taints, unschedulable: true } };
}

const toleration = fc.constantFrom<JsonObject>(
  { operator: "Exists" },
  { key: CONTROL_PLANE_LABEL, operator: "Exists" },
  { key: CONTROL_PLANE_LABEL, effect: "NoSchedule" },
  { key: "other", operator: "Exists" },
  { ...CORDON, operator: "Exists" },
);
const term = fc.constantFrom<JsonObject>(
  {},
  byName("cp-0"),
  byName("w-0"),
  byLabel("zone", "In", "a"),
  byLabel("zone", "NotIn", "a"),
  byLabel(CONTROL_PLANE_LABEL, "Exists"),
  byLabel(CONTROL_PLANE_LABEL, "DoesNotExist"),
  byLabel("gpu", "In", "yes", "no"),
  byLabel("gpu", "DoesNotExist"),
  byLabel("kubernetes.io/hostname", "In", "cp-0", "w-0"),
);
const many = Array.from({ length: 257 }, (_, i) => byLabel(`k${i}`, "DoesNotExist"));
const wide = {
  matchExpressions: Array.from({ length: 2_001 }, (_, i) => ({ key: `k${i}`, operator: "DoesNotExist" })),
};
const FIELDS: Readonly<Record<string, fc.Arbitrary<Json>>> = {
  tolerations: fc.array(toleration, { maxLength: 2 }),
  nodeSelector: fc.constantFrom<JsonObject>({ zone: "a" }, { gpu: "no" }, { [CONTROL_PLANE_LABEL]: "" }),
  affinity: fc
    .oneof(
      { weight: 8, arbitrary: fc.array(term, { minLength: 1, maxLength: 3 }) },
      { weight: 1, arbitrary: fc.constantFrom<JsonObject[]>(many, [wide]) },
    )
    .map((terms) => required(...terms)["affinity"] as JsonObject),
  schedulingGates: fc.constant([{ name: "g" }]),
  nodeName: fc.constantFrom("w-0", "cp-0"),
};
/** Few fields at a time: a field that one step leaves out, another may add. */
const spec: fc.Arbitrary<JsonObject> = fc
  .subarray(Object.keys(FIELDS), { maxLength: 3 })
  .chain((fields) =>
    fc.record(Object.fromEntries(fields.map((field) => [field, FIELDS[field] as fc.Arbitrary<Json>]))),
  );

type Workload = "DaemonSet" | "Deployment";
/** Own or created: a pod of the tenant, or the latest that a controller created. */
type Kind = Workload | "own" | "made";
/** A client sends a complete spec, or patches the stored one; a field may be removed from it. */
interface Sent {
  readonly does: "send" | "patch";
  readonly kind: Kind;
  readonly spec: JsonObject;
  readonly without: string;
}
type Step = Sent | { readonly does: "cordon" };
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 9,
    arbitrary: fc.record({
      does: fc.constantFrom("send", "patch"),
      kind: fc.constantFrom<Kind>("own", "made", "DaemonSet", "Deployment"),
      spec,
      without: fc.constantFrom("", ...Object.keys(FIELDS)),
    }),
  },
  { weight: 1, arbitrary: fc.record({ does: fc.constant("cordon") }) },
) as fc.Arbitrary<Step>;

/** As the scheduler filters: the node's name, cordons, taints, node affinity. */
function feasible(podSpec: Json | undefined, node: JsonObject): boolean {
  const tolerations = listAt(podSpec, "tolerations");
  if (at(node, "spec", "unschedulable") === true && !toleratesAll(tolerations, [CORDON])) return false;
  if (!toleratesAll(tolerations, taintsOf(node))) return false;
  return matchesPodPlacement(podSpec, { name: nameOf(node), labels: labelsOf(node) });
}

/** A cluster with one object of each kind, whose controllers create pods. */
class World {
  #cordoned = false;
  readonly #groups: readonly JsonObject[];
  readonly #workloads = new Map<Workload, JsonObject>();
  /** By their creator. */
  readonly #pods = new Map<string, JsonObject>();
  readonly #namespace: string;
  /** The rules by which requests were refused. */
  readonly refused: string[] = [];

  constructor(groups: readonly JsonObject[], namespace = "team-a") {
    this.#groups = groups;
    this.#namespace = namespace;
  }

  get #nodes(): readonly JsonObject[] {
    return this.#cordoned ? NODES.map(cordoned) : NODES;
  }

  async take(one: Step): Promise<void> {
    if (one.does === "cordon") this.#cordoned = !this.#cordoned;
    else if (one.kind === "own") await this.#takePod("own", one);
    else if (one.kind !== "made") await this.#takeWorkload(one.kind, one);
    else
      for (const key of [...this.#pods.keys()].filter((made) => made !== "own").slice(-1))
        await this.#takePod(key, one);
  }

  async #takePod(key: string, sent: Sent): Promise<void> {
    const stored = this.#pods.get(key);
    const spec = sentSpec(stored?.["spec"], sent);
    // The API server allows no update to change the node of a pod.
    const nodeName = at(stored, "spec", "nodeName") ?? spec["nodeName"] ?? "";
    const metadata = (stored?.["metadata"] ?? {}) as JsonObject;
    const pod = await this.#ask(podOf({ ...spec, nodeName }, metadata), MALLORY, stored);
    if (pod !== undefined) this.#pods.set(key, pod);
  }

  async #takeWorkload(kind: Workload, sent: Sent): Promise<void> {
    const stored = this.#workloads.get(kind);
    const object = workload(kind, sentSpec(at(stored, "spec", "template", "spec"), sent));
    const made = await this.#ask(object, MALLORY, stored);
    if (made === undefined) return;
    this.#workloads.set(kind, made);
    for (const key of this.#pods.keys()) if (key.startsWith(kind)) this.#pods.delete(key);
    const template = at(made, "spec", "template", "spec") as JsonObject;
    const nodes = this.#nodes.filter((node) => feasible(daemon(template), node));
    const specs = kind === "Deployment" ? [template] : nodes.map((node) => daemon(template, node));
    const actor = kind === "DaemonSet" ? DAEMON_SET_CONTROLLER : REPLICA_SET_CONTROLLER;
    for (const [i, spec] of specs.entries()) {
      const pod = await this.#ask(podOf(spec, owned(kind)), actor);
      if (pod !== undefined) this.#pods.set(`${kind} ${i}`, pod);
    }
  }

  /** Pods that a scheduler tries on a protected node. */
  threats(): readonly string[] {
    return [...this.#pods.values()]
      .map((pod) => pod["spec"])
      .filter((podSpec) => !isBoundSpec(podSpec) && !isGatedSpec(podSpec))
      .flatMap((podSpec) =>
        this.#nodes
          .filter((node) => PROTECTED.has(nameOf(node)) && feasible(podSpec, node))
          .map((node) => `${nameOf(node)}: ${JSON.stringify(podSpec).slice(0, 500)}`),
      );
  }

  async #ask(
    object: JsonObject,
    userInfo: UserInfo,
    oldObject?: JsonObject,
  ): Promise<JsonObject | undefined> {
    const request: AdmissionRequest = requestFor(object, {
      userInfo,
      ...(oldObject === undefined ? {} : { operation: "UPDATE" as const, oldObject }),
    });
    const cluster: Cluster = {
      groups: this.#groups,
      nodes: this.#nodes,
      installation: { controlPlaneNamespaces: ["cni"] },
    };
    const asked = await askGuard({ ...request, namespace: this.#namespace }, cluster);
    if (asked.allowed) return asked.object;
    this.refused.push(...asked.rules);
    return undefined;
  }
}

const REPLICA_SET_CONTROLLER = user("system:serviceaccount:kube-system:replicaset-controller");

function sentSpec(stored: Json | undefined, { does, spec: sent, without }: Sent): JsonObject {
  const { [without]: _gone, ...kept } = (stored ?? {}) as JsonObject;
  return does === "patch" ? { ...kept, ...sent } : sent;
}

function workload(kind: Workload, template: JsonObject): JsonObject {
  const metadata = { name: "own", namespace: "team-a" };
  return { apiVersion: "apps/v1", kind, metadata, spec: { template: { metadata: {}, spec: template } } };
}

function owned(kind: Workload): JsonObject {
  const owner = kind === "Deployment" ? "ReplicaSet" : kind;
  return {
    ownerReferences: [{ apiVersion: "apps/v1", kind: owner, name: "own", uid: "u", controller: true }],
  };
}

/** As the DaemonSet controller creates it: with a toleration of cordons, and for one node. */
function daemon(template: JsonObject, node?: JsonObject): JsonObject {
  const tolerations = [...listAt(template, "tolerations"), { ...CORDON, operator: "Exists" }];
  if (node === undefined) return { ...template, tolerations };
  return { ...template, tolerations, ...required(byName(nameOf(node))) };
}

const options = fc.record({
  steering: fc.constantFrom("Affinity", "DropToleration"),
  earlyRefusal: fc.constantFrom("Deny", "Warn"),
});

test("row 79: no sequence of creates and updates leaves a pod that a scheduler tries on a protected node", async () => {
  await fc.assert(
    fc.asyncProperty(options, fc.array(step, { minLength: 2, maxLength: 10 }), async (more, steps) => {
      const world = new World([GROUP, GPU].map((group) => ({ ...group, ...more })));
      for (const one of steps) {
        await world.take(one);
        expect(world.threats()).toEqual([]);
      }
    }),
    { numRuns: 150 },
  );
}, 60_000);

test("row 79: Inform refuses no step, and in an exempt namespace no step is refused for a possible node", async () => {
  await fc.assert(
    fc.asyncProperty(options, fc.array(step, { minLength: 2, maxLength: 6 }), async (more, steps) => {
      const groups = [GROUP, GPU].map((group) => ({ ...group, ...more }));
      const informing = new World(groups.map((group) => ({ ...group, mode: "Inform" })));
      const exempt = new World(groups, "cni");
      for (const one of steps) {
        await informing.take(one);
        await exempt.take(one);
      }
      expect(informing.refused).toEqual([]);
      expect(exempt.refused).not.toContain("reachable");
    }),
    { numRuns: 50 },
  );
}, 60_000);
