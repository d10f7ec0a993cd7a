// No status lies: an object without its intended effect is reported when it is written, in its status and by `usher
// review`. Walks every kind of every module.
import { expect, test } from "vitest";
import { assembleModules } from "../src/cli/source/source.ts";
import { Facts, type Need } from "../src/core/decision/need.ts";
import { evaluate } from "../src/core/evaluate/evaluate.ts";
import { responseOf } from "../src/core/evaluate/response.ts";
import { at, type JsonObject, listAt } from "../src/core/json.ts";
import type { Assembly } from "../src/core/module/assembly.ts";
import type { PlannedWrite, ReconcileKey } from "../src/core/module/reconciler.ts";
import { type Kind, kindResource } from "../src/core/policy/kind.ts";
import type { Change } from "../src/core/view/view.ts";
import { modules } from "../src/modules/all.ts";
import { atOnce, callOf } from "./builders/evaluation.ts";
import { outside } from "./builders/outside.ts";
import { requestFor } from "./builders/request.ts";
import { folder, usher } from "./cli/usher.ts";

const NOW = Date.UTC(2026, 10, 17, 12);

/** Kinds with the module that they belong to; kinds of other owners take effect elsewhere. */
const KINDS = modules.flatMap((module) =>
  module.kinds.filter(({ takeOver }) => takeOver !== "never").map((kind) => ({ module, kind })),
);

function objectOf(
  { group, versions, kind, scope, configuration }: Kind,
  change: JsonObject = {},
): JsonObject {
  const version = versions.find(({ storage }) => storage)?.name ?? "";
  if (configuration !== undefined) return { apiVersion: `${group}/${version}`, kind };
  return {
    apiVersion: `${group}/${version}`,
    kind,
    metadata: { name: "cluster", ...(scope === "Namespaced" ? { namespace: "shop" } : {}) },
    spec: {},
    ...change,
  };
}

function changeOf(kind: Kind, object: JsonObject): Change {
  const namespace = String(at(object, "metadata", "namespace") ?? "");
  return { resource: kindResource(kind), namespace, name: String(at(object, "metadata", "name")), object };
}

/** The warnings in the API server's response when the object is created. */
function warningsAtWrite(assembly: Assembly, { group, plural, versions, kind }: Kind, object: JsonObject) {
  const version = versions.find(({ storage }) => storage)?.name ?? "";
  const request = requestFor(object, {
    resource: { group, version, resource: plural },
    kind: { group, version, kind },
    namespace: String(at(object, "metadata", "namespace") ?? ""),
  });
  const call = callOf(assembly, request, { phase: "validate", now: NOW });
  const response = responseOf(atOnce(evaluate(call, outside())));
  return { allowed: response.allowed, warnings: response.warnings ?? [] };
}

/** The status that the leader writes for a stored object. */
function statusWritten(assembly: Assembly, kind: Kind, object: JsonObject): JsonObject | undefined {
  const change = changeOf(kind, object);
  assembly.apply([change]);
  const { namespace, name, resource } = change;
  const stored = {
    ...object,
    metadata: { ...Object(object["metadata"]), generation: 2, resourceVersion: "7" },
  };
  const facts = new Facts();
  const live: Need = { get: { resource, ...(namespace === "" ? {} : { namespace }), name }, live: true };
  facts.set(live, { found: stored, complete: true });
  const context = { view: assembly.view, assembly, facts, now: NOW };
  const writes: PlannedWrite[] = [];
  for (const { reconciler } of assembly.modules) {
    if (reconciler === undefined) continue;
    const state = reconciler.initialState();
    const keys: ReconcileKey[] = [...(reconciler.initialKeys?.(state, context) ?? [])];
    for (const key of [...keys, ...reconciler.keys(change, state, context)]) {
      const result = reconciler.reconcile(key, state, context);
      if (!("need" in result)) writes.push(...result.writes);
    }
  }
  const write = writes.find((one) => "status" in one && one.of.name === name && one.of.resource === resource);
  return write !== undefined && "status" in write ? write.status : undefined;
}

function conditionsOf(status: JsonObject | undefined): string[] {
  return listAt(status, "conditions").map(
    (one) => `${at(one, "type")}=${at(one, "status")}: ${at(one, "message")}`,
  );
}

/** The kinds that a configuration ignores, with the expected message. */
interface Ignored {
  readonly kind: Kind;
  readonly configuration: { readonly modules?: Record<string, Record<string, unknown>> };
  readonly message: RegExp;
}

const OFF: readonly Ignored[] = KINDS.map(({ module: { name }, kind }) => ({
  kind,
  configuration: { modules: { [name]: { enabled: false } } },
  message: new RegExp(`usher ignores this ${kind.kind}: spec.modules.${name}.enabled is not true`),
}));

/** Kinds that need a gate or a mode that is off by default. */
const GATED: readonly Ignored[] = KINDS.filter(({ kind }) => kind.registered !== undefined).map(
  ({ kind }) => ({
    kind,
    configuration: {},
    message: new RegExp(`usher ignores this ${kind.kind}: spec.(featureGates|modules)\\..+ is not`),
  }),
);

const cases = [...OFF, ...GATED].map((one): [string, Ignored] => [
  `${one.kind.kind}: ${one.message.source}`,
  one,
]);

test("the walked kinds include those with a gate", () => {
  const kinds = GATED.map(({ kind }) => kind.kind);
  expect(kinds).toEqual(expect.arrayContaining(["NodeSchedulingPolicy", "PodSecurityException"]));
});

test.each(cases.filter(([, { kind }]) => kind.standing === "resource"))(
  "a policy that the configuration ignores is admitted with a warning: %s",
  (_, { kind, configuration, message }) => {
    const assembly = assembleModules(modules, {}, configuration);
    const { allowed, warnings } = warningsAtWrite(assembly, kind, objectOf(kind));
    expect(allowed).toBe(true);
    expect(warnings.join()).toMatch(message);
  },
);

test.each(cases.filter(([, { kind }]) => kind.versions.some(({ status }) => status !== undefined)))(
  "a policy that the configuration ignores has a status that claims no effect: %s",
  (_, { kind, configuration, message }) => {
    const before = { matched: 3, conditions: [{ type: "Valid", status: "True", message: "in use" }] };
    const assembly = assembleModules(modules, {}, configuration);
    const status = statusWritten(assembly, kind, objectOf(kind, { status: before }));
    expect(conditionsOf(status)).toEqual([expect.stringMatching(message)]);
    expect(Object.keys(status ?? {}).sort()).toEqual(["conditions", "observedGeneration"]);
  },
);

/** An object that is in force but can't have its intended effect. */
interface Idle {
  readonly kind: string;
  readonly what: string;
  readonly metadata?: JsonObject;
  readonly spec: JsonObject;
  readonly configuration?: Ignored["configuration"] & { readonly featureGates?: Record<string, boolean> };
  /** The warning when it is written, and in `review`. */
  readonly warning: RegExp;
  /** The message in its conditions. @default the warning */
  readonly condition?: RegExp;
}

const GATE = { featureGates: { OpenShiftNodeSchedulingPolicy: true } };
const REPLACE = { modules: { "pod-os": { podSecurity: { mode: "Replace" } } } };
const PLACING = { podSelector: {}, namespaceSelector: {}, nodeSelector: { pool: "general" } };
const EXCEPTION = { checks: ["hostPathVolumes"], expires: "2026-12-01T00:00:00Z" };

/** A plain Kubernetes cluster with two nodes and one namespace. */
const CLUSTER: readonly JsonObject[] = [
  { apiVersion: "v1", kind: "Namespace", metadata: { name: "shop" } },
  ...["a", "b"].map((name) => ({
    apiVersion: "v1",
    kind: "Node",
    metadata: { name, labels: { pool: "general" } },
    spec: { taints: [{ key: "dedicated", value: "general", effect: "NoSchedule" }] },
  })),
];

const IDLE: readonly Idle[] = [
  {
    kind: "ClusterPodSchedulingPolicy",
    what: "selects no pod",
    spec: { ...PLACING, podSelector: null },
    warning: /selects nothing/,
  },
  {
    kind: "ClusterPodSchedulingPolicy",
    what: "has no criteria",
    spec: { podSelector: {}, namespaceSelector: {} },
    warning: /no scheduling criteria/,
  },
  {
    kind: "ClusterPodSchedulingPolicy",
    what: "selects no namespace",
    spec: { ...PLACING, namespaceSelector: { matchLabels: { team: "none" } } },
    warning: /matches no namespace/,
  },
  {
    kind: "ClusterPodSchedulingPolicy",
    what: "selects no node",
    spec: { ...PLACING, nodeSelector: { pool: "gone" }, failurePolicy: "Fail" },
    warning: /selects 0 of 2 nodes: pods that get it stay pending/,
  },
  {
    kind: "ClusterPodSchedulingPolicy",
    what: "tolerates a pool that does not exist",
    spec: { ...PLACING, tolerations: [{ key: "dedicated", value: "gpu", effect: "NoSchedule" }] },
    warning: /spec\.tolerations\[0\]: tolerates a taint that no node has: dedicated/,
  },
  {
    kind: "ClusterPodSchedulingPolicy",
    what: "is for kinds that are not placed",
    spec: { ...PLACING, targets: "Pods" },
    configuration: { modules: { placement: { resources: ["deployments.apps"] } } },
    warning: /spec\.modules\.placement\.resources of the configuration has no kind for targets: Pods/,
  },
  {
    kind: "PodSchedulingPolicy",
    what: "is in an exempt namespace",
    metadata: { name: "p", namespace: "kube-system" },
    spec: { podSelector: {}, nodeSelector: { pool: "general" } },
    warning: /usher changes nothing in namespace kube-system/,
  },
  {
    kind: "PodSchedulingPolicy",
    what: "names a node that does not exist",
    spec: { podSelector: {}, nodeName: "c" },
    warning: /selects 0 of 2 nodes/,
  },
  {
    kind: "Labels",
    what: "matches no name",
    spec: { nodeNamePatterns: [], labels: { "example.com/a": "b" } },
    warning: /matches no node/,
  },
  {
    kind: "Labels",
    what: "sets nothing",
    spec: { nodeNamePatterns: ["a"] },
    warning: /sets nothing/,
  },
  {
    kind: "OwnedLabels",
    what: "is in a namespace that does not count",
    spec: { domain: "example.com" },
    configuration: { modules: { "node-labels": { namespace: "elsewhere" } } },
    warning: /restricts node-labels to namespace elsewhere/,
  },
  {
    kind: "NodeSchedulingPolicy",
    what: "is not named cluster",
    metadata: { name: "other" },
    spec: { groups: [] },
    configuration: GATE,
    warning: /only the object named cluster/,
  },
  {
    kind: "NodeGuardOverride",
    what: "is for a group that does not exist",
    metadata: { name: "o" },
    spec: {
      group: "Nowhere",
      mode: "Inform",
      from: "2026-11-17T11:00:00Z",
      until: "2026-11-17T18:00:00Z",
      reason: "test",
    },
    configuration: GATE,
    warning: /there is no group Nowhere, so nothing is overridden/,
  },
  {
    kind: "PodSecurityException",
    what: "is for namespaces that do not exist",
    spec: { ...EXCEPTION, namespaces: ["gone"] },
    configuration: REPLACE,
    warning: /no such namespace: gone/,
  },
  {
    kind: "ProjectRequestLimit",
    what: "is not named cluster",
    metadata: { name: "other" },
    spec: { limits: [{ maxProjects: 1 }] },
    warning: /only the object named cluster counts; this one is ignored/,
    condition: /only the ProjectRequestLimit named cluster counts; this one has no effect/,
  },
  {
    kind: "ProjectRequestLimit",
    what: "is on a cluster without ProjectRequests",
    spec: { limits: [{ maxProjects: 10 }] },
    warning: /nothing is limited: .* add spec\.namespaces: \{\}/,
  },
];

function idleObject({ kind: name, metadata, spec }: Idle): { kind: Kind; object: JsonObject } {
  const kind = KINDS.find((one) => one.kind.kind === name)?.kind;
  if (kind === undefined) throw new Error(`no kind ${name}`);
  return { kind, object: objectOf(kind, { spec, ...(metadata === undefined ? {} : { metadata }) }) };
}

function clusterOf(configuration: Idle["configuration"] = {}): Assembly {
  const assembly = assembleModules(modules, {}, configuration);
  assembly.apply(
    CLUSTER.map((object) => ({
      resource: `${String(object["kind"]).toLowerCase()}s`,
      namespace: "",
      name: String(at(object, "metadata", "name")),
      object,
    })),
  );
  return assembly;
}

test("every kind has a case", () => {
  const kinds = KINDS.map(({ kind }) => kind).filter(({ standing }) => standing === "resource");
  expect(new Set(IDLE.map(({ kind }) => kind))).toEqual(new Set(kinds.map(({ kind }) => kind)));
});

const idle = IDLE.map((one): [string, Idle] => [`${one.kind} that ${one.what}`, one]);

test.each(idle)("%s is admitted with a warning", (_, one) => {
  const { kind, object } = idleObject(one);
  const { allowed, warnings } = warningsAtWrite(clusterOf(one.configuration), kind, object);
  expect(allowed).toBe(true);
  expect(warnings.join("\n")).toMatch(one.warning);
});

test.each(idle)("%s is reported in its status", (_, one) => {
  const { kind, object } = idleObject(one);
  const status = statusWritten(clusterOf(one.configuration), kind, object);
  expect(conditionsOf(status).join("\n")).toMatch(one.condition ?? one.warning);
});

test.each(idle)("%s is reported by review", async (_, one) => {
  const source = folder({
    "cluster.json": JSON.stringify({ apiVersion: "v1", kind: "List", items: CLUSTER }),
    "policy.json": JSON.stringify(idleObject(one).object),
    "usher.json": JSON.stringify({
      apiVersion: "usher.dev/v1alpha1",
      kind: "UsherConfiguration",
      spec: one.configuration ?? {},
    }),
  });
  const args = ["review", `${source}/policy.json`, "--source", source, "--config", `${source}/usher.json`];
  const { out, err } = await usher(args);
  expect(`${out}\n${err}`).toMatch(one.warning);
});

test.each(cases)(
  "a policy that the configuration ignores is reported by review, and is an error with --strict: %s",
  async (_, { kind, configuration, message }) => {
    const usherConfiguration = {
      apiVersion: "usher.dev/v1alpha1",
      kind: "UsherConfiguration",
      spec: configuration,
    };
    const pod = { apiVersion: "v1", kind: "Pod", metadata: { name: "p" }, spec: { containers: [] } };
    const source = folder({
      "policy.json": JSON.stringify(objectOf(kind)),
      "pod.json": JSON.stringify(pod),
      "usher.json": JSON.stringify(usherConfiguration),
    });
    const args = ["review", `${source}/pod.json`, "--source", source, "--config", `${source}/usher.json`];
    expect((await usher(args)).err).toMatch(message);
    const strict = await usher([...args, "--strict"]);
    expect(strict.err).toMatch(message);
    expect(strict.code).toBe(2);
  },
);
