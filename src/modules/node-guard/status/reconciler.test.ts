import { describe, expect, test } from "vitest";
import { Facts, type Need } from "../../../core/decision/need.ts";
import { Gates } from "../../../core/installation/gates.ts";
import { DEFAULT_INSTALLATION } from "../../../core/installation/installation.ts";
import { type JsonObject, listAt } from "../../../core/json.ts";
import { Assembly } from "../../../core/module/assembly.ts";
import type { ReconcileResult } from "../../../core/module/reconciler.ts";
import { compileAll } from "../fallback/compile.ts";
import { nodeGuard } from "../index.ts";
import { GATE } from "../settings.ts";
import { type GuardKey, type GuardState, guardReconciler as reconciler } from "./reconciler.ts";

const NOW = Date.parse("2026-11-16T12:00:00Z");
const CP = "node-role.kubernetes.io/control-plane";
const TAINT = { key: CP, effect: "NoSchedule" };

const RESOURCES: Readonly<Record<string, string>> = {
  Node: "nodes",
  Pod: "pods",
  Scheduler: "schedulers.config.openshift.io",
  NodeSchedulingPolicy: "nodeschedulingpolicies.scheduling.openshift.io",
  NodeGuardOverride: "nodeguardoverrides.usher.dev",
  ValidatingAdmissionPolicy: "validatingadmissionpolicies.admissionregistration.k8s.io",
  ValidatingAdmissionPolicyBinding: "validatingadmissionpolicybindings.admissionregistration.k8s.io",
};

const stored = (kind: string, name: string, more: JsonObject, metadata: JsonObject = {}): JsonObject => ({
  apiVersion: "x/v1",
  kind,
  metadata: { name, resourceVersion: "7", generation: 1, ...metadata },
  ...more,
});
const node = (name: string, labels: JsonObject, taints: JsonObject[] = []) =>
  stored("Node", name, { spec: { taints } }, { labels });
const policy = (mode: string, name = "cluster"): JsonObject => ({
  ...stored("NodeSchedulingPolicy", name, { spec: { groups: [{ name: "ControlPlane", mode }] } }),
  apiVersion: "scheduling.openshift.io/v1alpha1",
});
const masters = (mastersSchedulable: boolean) =>
  stored("Scheduler", "cluster", { spec: { mastersSchedulable } });
const override = (from: string, until: string): JsonObject =>
  stored(
    "NodeGuardOverride",
    "o",
    { spec: { group: "ControlPlane", mode: "Inform", from, until, reason: "replace cp-0" } },
    { annotations: { "usher.dev/granted-by": "sre" } },
  );
const pod = (namespace: string, name: string) =>
  stored("Pod", name, { spec: { nodeName: "cp-0" } }, { namespace });

interface Options {
  readonly settings?: JsonObject;
  readonly on?: boolean;
  readonly now?: number;
}

class Leader {
  readonly assembly: Assembly;
  readonly state: GuardState = reconciler.initialState();
  readonly #objects: readonly JsonObject[];
  readonly #now: number;

  constructor(objects: readonly JsonObject[], { settings = {}, on = true, now = NOW }: Options = {}) {
    const installation = { ...DEFAULT_INSTALLATION, settings: { "node-guard": settings } };
    this.assembly = new Assembly([nodeGuard], installation, new Gates([{ ...GATE, default: on }]));
    this.#objects = objects;
    this.#now = now;
    this.assembly.apply(objects.map((object) => this.change(object)));
  }

  change(object: JsonObject) {
    const { name, namespace = "" } = object["metadata"] as { name: string; namespace?: string };
    return { resource: RESOURCES[String(object["kind"])] ?? "", namespace, name, object };
  }

  get context() {
    return { view: this.assembly.view, assembly: this.assembly };
  }

  initialKeys(): GuardKey[] {
    return [...(reconciler.initialKeys?.(this.state, this.context) ?? [])];
  }

  keys(object: JsonObject): readonly GuardKey[] {
    return reconciler.keys(this.change(object), this.state, this.context);
  }

  reconcile(key: GuardKey): ReconcileResult<GuardKey> {
    const facts = new Facts();
    for (let round = 0; round < 3; round++) {
      const result = reconciler.reconcile(key, this.state, { ...this.context, facts, now: this.#now });
      if ("writes" in result) return result;
      for (const need of result.need) facts.set(need, this.#fact(need));
    }
    throw new Error("too many rounds");
  }

  #fact(need: Need) {
    const found = this.#objects.find((object) => {
      const { resource, name } = this.change(object);
      return "get" in need && need.get.resource === resource && need.get.name === name;
    });
    return found === undefined ? ({ absent: "NotFound" } as const) : { found, complete: true };
  }

  status(key: GuardKey): JsonObject {
    const [write] = this.reconcile(key).writes;
    return write !== undefined && "status" in write ? write.status : {};
  }

  condition(key: GuardKey, type: string): unknown {
    return listAt(this.status(key), "conditions").find((one) => (one as JsonObject)["type"] === type);
  }
}

const POLICY: GuardKey = { kind: "policy", name: "cluster" };
const NODES = [node("cp-0", { [CP]: "" }), node("w-0", {})];

describe("the status of a NodeSchedulingPolicy", () => {
  test("has all groups as they count", () => {
    const leader = new Leader([policy("Inform"), ...NODES, pod("team-a", "web"), pod("kube-system", "dns")]);
    expect(leader.status(POLICY)).toMatchObject({
      observedGeneration: 1,
      groups: [
        {
          name: "ControlPlane",
          mode: "Inform",
          effectiveMode: "Inform",
          because: "NodeSchedulingPolicy cluster",
          nodes: 1,
          violations: 1,
          fallback: false,
        },
      ],
    });
    expect(leader.condition(POLICY, "NoViolations")).toMatchObject({
      status: "False",
      message: expect.stringContaining("none is evicted"),
    });
  });

  test.each<[string, JsonObject, JsonObject, string, RegExp]>([
    ["rbac", { rbac: true }, {}, "False", /not guarded in ControlPlane \(its rights are in RBAC/],
    [
      "no fallback",
      {},
      { fallback: false },
      "False",
      /ControlPlane \(spec\.modules\.node-guard\.fallback is off/,
    ],
    ["no stored policies", {}, {}, "False", /ControlPlane \(its policies are not stored/],
    ["Inform", { rbac: true, mode: "Inform" }, {}, "True", /are guarded/],
  ])(
    "reports whether nodes that join are guarded while usher is down: %s",
    (_what, group, settings, status, message) => {
      const groups = [{ name: "ControlPlane", mode: "Enable", ...group }];
      const object = { ...policy("Enable"), spec: { groups } };
      expect(new Leader([object, ...NODES], { settings }).condition(POLICY, "NewNodesGuarded")).toMatchObject(
        {
          status,
          message: expect.stringMatching(message),
        },
      );
    },
  );

  test("reports that nodes that join are guarded by the fallback", () => {
    const objects = [policy("Enable"), ...NODES];
    const { assembly } = new Leader(objects);
    const compiled = compileAll(assembly.view, assembly.installation, NOW);
    expect(new Leader([...objects, ...compiled]).condition(POLICY, "NewNodesGuarded")).toMatchObject({
      status: "True",
      reason: "Fallback",
    });
  });

  test("reports that another name has no effect", () => {
    const leader = new Leader([policy("Enable", "other")]);
    expect(leader.condition({ kind: "policy", name: "other" }, "Valid")).toMatchObject({
      status: "False",
      reason: "NotInForce",
      message: expect.stringContaining("only the object named cluster counts"),
    });
  });

  test.each([
    [true, "Enable", "False"],
    [true, "Inform", "True"],
    [false, "Enable", "True"],
  ])("with mastersSchedulable %s and %s Consistent is %s", (schedulable, mode, status) => {
    const leader = new Leader([policy(mode), masters(schedulable), ...NODES]);
    expect(leader.condition(POLICY, "Consistent")).toMatchObject({ status });
  });

  test.each<[JsonObject, JsonObject[], string]>([
    [{}, [masters(false)], "Unmanaged"],
    [{ manageTaint: true }, [], "NoScheduler"],
    [{ manageTaint: true }, [masters(false)], "Managed"],
  ])("with settings %j: TaintManaged", (settings, objects, reason) => {
    const leader = new Leader([policy("Inform"), ...objects], { settings });
    expect(leader.condition(POLICY, "TaintManaged")).toMatchObject({ reason });
  });

  test("is written once", () => {
    const first = new Leader([policy("Inform"), ...NODES]);
    const status = first.status(POLICY);
    const second = new Leader([{ ...policy("Inform"), status }, ...NODES]);
    expect(second.reconcile(POLICY).writes).toEqual([]);
  });
});

describe("the status of an override", () => {
  const KEY: GuardKey = { kind: "override", name: "o" };

  test.each([
    ["2026-11-16T11:00:00Z", "2026-11-16T12:30:00Z", "True", "Granted", 1_800],
    ["2026-11-16T12:00:30Z", "2026-11-16T12:30:00Z", "False", "Pending", 30],
    ["2026-11-16T11:00:00Z", "2026-11-16T12:00:00Z", "False", "Expired", undefined],
    ["2026-11-16T11:00:00Z", "2026-11-18T12:00:00Z", "False", "Invalid", undefined],
  ])("from %s until %s: Active is %s, %s", (from, until, status, reason, requeueAfter) => {
    const leader = new Leader([policy("Enable"), override(from, until)]);
    expect(leader.condition(KEY, "Active")).toMatchObject({ status, reason });
    expect(leader.reconcile(KEY).requeueAfter).toBe(requeueAfter);
  });

  test("names who granted it, and the metric counts it while it is active", () => {
    const leader = new Leader([
      policy("Enable"),
      override("2026-11-16T11:00:00Z", "2026-11-16T12:30:00Z"),
      ...NODES,
    ]);
    expect(leader.status(KEY)["grantedBy"]).toBe("sre");
    leader.reconcile({ kind: "scan" });
    const figure = (metric: string) =>
      reconciler.figures?.(leader.state, leader.context).find((one) => one.metric === metric)?.value;
    expect(figure("usher_node_guard_override_active")).toBe(1);
    expect(figure("usher_node_guard_protected_nodes")).toBe(1);
    expect(figure("usher_node_guard_running_violations")).toBe(0);
  });
});

describe("the control plane's taint", () => {
  const KEY: GuardKey = { kind: "taint", name: "cp-0" };
  const settings = { manageTaint: true };

  test.each<[string, boolean, JsonObject[], JsonObject[] | undefined]>([
    ["is set", false, [{ key: "a", effect: "NoExecute" }], [{ key: "a", effect: "NoExecute" }, TAINT]],
    [
      "is removed, and others stay",
      true,
      [TAINT, { key: "a", effect: "NoExecute" }],
      [{ key: "a", effect: "NoExecute" }],
    ],
    ["stays", false, [TAINT], undefined],
    ["stays away", true, [], undefined],
    ["of another effect is not touched", true, [{ key: CP, effect: "NoExecute" }], undefined],
  ])("%s with mastersSchedulable %s", (_case, schedulable, before, after) => {
    const leader = new Leader([masters(schedulable), node("cp-0", { [CP]: "true" }, before)], { settings });
    const patch = { op: "add", path: "/spec/taints", value: after };
    const write = { patch: [patch], of: { resource: "nodes", name: "cp-0" }, resourceVersion: "7" };
    expect(leader.reconcile(KEY).writes).toEqual(after === undefined ? [] : [write]);
    expect(leader.initialKeys().some(({ kind }) => kind === "taint")).toBe(after !== undefined);
  });

  test("stays without a Scheduler, without the setting, and on other nodes", () => {
    const untainted = node("cp-0", { [CP]: "" });
    expect(new Leader([untainted], { settings }).initialKeys()).toEqual([{ kind: "scan" }]);
    expect(new Leader([untainted, masters(false)]).initialKeys()).toEqual([{ kind: "scan" }]);
    expect(new Leader([node("w-0", {}), masters(false)], { settings }).initialKeys()).toEqual([
      { kind: "scan" },
    ]);
  });
});

test("a change of a Scheduler affects policies and nodes", () => {
  const leader = new Leader([policy("Inform"), masters(false), ...NODES], {
    settings: { manageTaint: true },
  });
  expect(leader.keys(masters(false))).toEqual(
    expect.arrayContaining([{ kind: "scan" }, POLICY, { kind: "taint", name: "cp-0" }]),
  );
});

test("nothing happens while the gate is off", () => {
  const leader = new Leader([policy("Enable"), masters(false), ...NODES], {
    on: false,
    settings: { manageTaint: true },
  });
  expect(leader.initialKeys()).toEqual([]);
  expect(leader.keys(masters(false))).toEqual([]);
  expect(leader.reconcile(POLICY).writes).toEqual([]);
});

test("the status is reconciled when an object of the fallback changes", () => {
  const leader = new Leader([policy("Enable"), node("cp-0", { [CP]: "" })]);
  const objects = compileAll(leader.assembly.view, leader.assembly.installation, NOW);
  expect(objects.length).toBeGreaterThan(0);
  for (const object of objects) expect(leader.keys(object)).toEqual([{ kind: "policy", name: "cluster" }]);
});
