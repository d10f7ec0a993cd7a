import type { Fact, Need } from "../../src/core/decision/need.ts";
import type { AdmissionRequest, UserInfo } from "../../src/core/decision/request.ts";
import { effectsOf } from "../../src/core/evaluate/effects.ts";
import { evaluate } from "../../src/core/evaluate/evaluate.ts";
import { responseOf } from "../../src/core/evaluate/response.ts";
import { Gates } from "../../src/core/installation/gates.ts";
import { DEFAULT_INSTALLATION, type Installation } from "../../src/core/installation/installation.ts";
import type { Json, JsonObject } from "../../src/core/json.ts";
import { Assembly } from "../../src/core/module/assembly.ts";
import type { Module } from "../../src/core/module/module.ts";
import { nodeGuard } from "../../src/modules/node-guard/index.ts";
import { node } from "./node.ts";
import { outside } from "./outside.ts";
import { came } from "./policy.ts";
import { requestFor } from "./request.ts";

export const CONTROL_PLANE_LABEL = "node-role.kubernetes.io/control-plane";
export const NOW = Date.parse("2026-11-16T12:00:00Z");

export const TAINT: JsonObject = { key: CONTROL_PLANE_LABEL, effect: "NoSchedule" };

export function controlPlaneNode(
  name: string,
  labels: JsonObject = {},
  taints: readonly Json[] = [TAINT],
): JsonObject {
  const all = { [CONTROL_PLANE_LABEL]: "", "kubernetes.io/hostname": name, ...labels };
  return node(name, all, { spec: { taints }, metadata: { creationTimestamp: "2026-01-01T00:00:00Z" } });
}

export function worker(name: string, labels: JsonObject = {}): JsonObject {
  const all = { "kubernetes.io/hostname": name, ...labels };
  return node(name, all, { metadata: { creationTimestamp: "2026-01-01T00:00:00Z" } });
}

/** The cluster of the attack list: three control-plane nodes, some workers. */
export const NODES: readonly JsonObject[] = [
  controlPlaneNode("cp-0"),
  controlPlaneNode("cp-1"),
  controlPlaneNode("cp-2"),
  worker("w-0"),
  worker("w-1"),
];

export const GROUP: JsonObject = {
  name: "ControlPlane",
  mode: "Enable",
  labelSelector: { matchExpressions: [{ key: CONTROL_PLANE_LABEL, operator: "Exists" }] },
  authorizedUsers: ["system:kube-scheduler", "kube-system/default", "sre"],
  emergencyUsers: ["sre"],
};

/** A NodeSchedulingPolicy; only the one named `cluster` counts. */
export function schedulingPolicy(
  groups: readonly JsonObject[],
  name = "cluster",
  spec: JsonObject = {},
): JsonObject {
  return {
    apiVersion: "scheduling.openshift.io/v1alpha1",
    kind: "NodeSchedulingPolicy",
    metadata: { name },
    spec: { ...spec, groups },
  };
}

/** The NodeSchedulingPolicy that counts, with the control-plane group in force. */
export function controlPlanePolicy(group: JsonObject = {}): JsonObject {
  return schedulingPolicy([{ name: "ControlPlane", mode: "Enable", ...group }]);
}

export function override(spec: JsonObject, metadata: JsonObject = {}): JsonObject {
  return {
    apiVersion: "usher.dev/v1alpha1",
    kind: "NodeGuardOverride",
    metadata: { name: "o", ...metadata },
    spec,
  };
}

export function user(username: string, ...groups: string[]): UserInfo {
  return { username, groups: [...groups, "system:authenticated"] };
}

export const MALLORY = user("mallory");
export const SCHEDULER = user("system:kube-scheduler");
export const DAEMON_SET_CONTROLLER = user(
  "system:serviceaccount:kube-system:daemon-set-controller",
  "system:serviceaccounts",
);

export interface Cluster {
  readonly groups?: readonly JsonObject[];
  readonly nodes?: readonly JsonObject[];
  /** The objects that the API server has, where the cache is behind. @default as cached */
  readonly live?: readonly JsonObject[];
  readonly pods?: readonly JsonObject[];
  readonly objects?: readonly JsonObject[];
  readonly fact?: (need: Need) => Fact | undefined;
  readonly now?: number;
  readonly modules?: readonly Module[];
  readonly installation?: Partial<Installation>;
}

export function guardAssembly({
  groups = [GROUP],
  nodes = NODES,
  objects = [],
  modules = [nodeGuard],
  installation = {},
}: Cluster): Assembly {
  const gates = new Gates(
    modules.flatMap((module) => module.gates ?? []),
    new Map([["OpenShiftNodeSchedulingPolicy", true]]),
  );
  const settings = { "node-guard": { policy: { groups } } };
  const assembly = new Assembly(modules, { ...DEFAULT_INSTALLATION, settings, ...installation }, gates);
  assembly.serve("nodes");
  assembly.apply([...nodes, ...objects].map(came));
  return assembly;
}

/** The result of a request in both phases. */
export interface Asked {
  readonly allowed: boolean;
  readonly code: number | undefined;
  readonly message: string;
  readonly rules: readonly string[];
  readonly warnings: readonly string[];
  readonly audit: Readonly<Record<string, string>>;
  readonly events: readonly JsonObject[];
  readonly object: JsonObject;
  readonly patched: boolean;
  readonly hooks: readonly string[];
  readonly needs: readonly Need[];
  /** The needs of each round, over both phases. */
  readonly rounds: readonly (readonly Need[])[];
}

/** Calls both phases with a request, as an API server does. */
export async function askGuard(request: AdmissionRequest, cluster: Cluster = {}): Promise<Asked> {
  const assembly = guardAssembly(cluster);
  const { live = cluster.nodes ?? NODES, pods = [], now = NOW } = cluster;
  const world = outside({ fact: (need) => cluster.fact?.(need) ?? factOf(need, live, pods) });
  const call = (phase: "mutate" | "validate", asked: AdmissionRequest) =>
    evaluate({ assembly, phase, hooks: assembly.hooks, request: asked, now }, world);
  const mutated = await call("mutate", structuredClone(request));
  const object = mutated.draft.object;
  const evaluation = await call("validate", {
    ...structuredClone(request),
    ...(request.object === undefined ? {} : { object }),
  });
  const responses = [mutated, evaluation].map(responseOf);
  const denied = responses.find(({ allowed }) => !allowed);
  const findings = [...mutated.findings, ...evaluation.findings];
  return {
    allowed: denied === undefined,
    code: denied?.status?.code,
    message: denied?.status?.message ?? "",
    rules: findings
      .filter(({ outcome }) => outcome === "violated" || outcome === "would-violate")
      .map(({ rule }) => rule),
    warnings: responses.flatMap(({ warnings }) => warnings),
    audit: Object.assign({}, ...responses.map(({ audit }) => audit)),
    events: [mutated, evaluation].flatMap((one) => effectsOf(one).events as unknown as JsonObject[]),
    object,
    patched: mutated.patched.size > 0,
    hooks: [...mutated.asked, ...evaluation.asked].map(({ name }) => name),
    needs: world.fetches.flat(),
    rounds: world.fetches,
  };
}

function factOf(need: Need, nodes: readonly JsonObject[], pods: readonly JsonObject[]): Fact {
  if (!("get" in need)) return { found: { allowed: false }, complete: true };
  const { resource, name, namespace } = need.get;
  const found = (resource === "nodes" ? nodes : pods).find(({ metadata }) => {
    const { name: known, namespace: its } = metadata as { name: string; namespace?: string };
    return known === name && its === namespace;
  });
  return found === undefined ? { absent: "NotFound" } : { found, complete: true };
}

export function podOf(spec: JsonObject, metadata: JsonObject = {}): JsonObject {
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "web", namespace: "team-a", ...metadata },
    spec: { containers: [{ name: "c", image: "i" }], ...spec },
  };
}

export function creating(
  spec: JsonObject,
  userInfo: UserInfo = MALLORY,
  metadata: JsonObject = {},
): AdmissionRequest {
  return requestFor(podOf(spec, metadata), { userInfo });
}

export function updating(
  before: JsonObject,
  after: JsonObject,
  userInfo: UserInfo = MALLORY,
  metadata: readonly [JsonObject, JsonObject] = [{}, {}],
): AdmissionRequest {
  const uid = "uid-of-web";
  return requestFor(podOf(after, { uid, ...metadata[1] }), {
    userInfo,
    operation: "UPDATE",
    oldObject: podOf(before, { uid, ...metadata[0] }),
  });
}

export function binding(
  target: JsonObject | string,
  userInfo: UserInfo = SCHEDULER,
  {
    namespace = "team-a",
    uid = "uid-of-web",
    legacy = false,
  }: { namespace?: string; uid?: string | null; legacy?: boolean } = {},
): AdmissionRequest {
  const object = {
    apiVersion: "v1",
    kind: "Binding",
    metadata: { name: "web", namespace, ...(uid === null ? {} : { uid }) },
    target: typeof target === "string" ? { kind: "Node", name: target } : target,
  };
  return requestFor(object, {
    userInfo,
    name: "web",
    resource: { group: "", version: "v1", resource: legacy ? "bindings" : "pods" },
    subResource: legacy ? "" : "binding",
  });
}

export function required(...nodeSelectorTerms: readonly Json[]): JsonObject {
  return {
    affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } } },
  };
}

export function byName(name: string): JsonObject {
  return { matchFields: [{ key: "metadata.name", operator: "In", values: [name] }] };
}

export function byLabel(key: string, operator: string, ...values: string[]): JsonObject {
  return { matchExpressions: [{ key, operator, ...(values.length === 0 ? {} : { values }) }] };
}
