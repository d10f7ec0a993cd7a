import { beforeEach, describe, expect, test } from "vitest";
import { moduleThat } from "../../../../test/builders/module.ts";
import { deployment } from "../../../../test/builders/pod.ts";
import { came, clusterPolicy, went } from "../../../../test/builders/policy.ts";
import { allow } from "../../../core/decision/decision.ts";
import { type Fact, Facts, type Need } from "../../../core/decision/need.ts";
import { Gates } from "../../../core/installation/gates.ts";
import { DEFAULT_INSTALLATION, type Installation } from "../../../core/installation/installation.ts";
import { type Json, type JsonObject, stringAt } from "../../../core/json.ts";
import { Assembly } from "../../../core/module/assembly.ts";
import type { Module } from "../../../core/module/module.ts";
import type { ReconcileContext, ReconcileResult } from "../../../core/module/reconciler.ts";
import { PROVENANCE } from "../../../core/provenance/annotation.ts";
import { clusterPodSchedulingPolicy } from "../kinds.ts";
import { workloadFigures } from "../metrics.ts";
import { type PlacementKey, placementReconciler } from "../reconciler.ts";

const REF = { kind: "ClusterPodSchedulingPolicy", name: "etcd" };
const KEY = "ClusterPodSchedulingPolicy/etcd";
const STATUS_KEY: PlacementKey = {
  kind: "status",
  resource: "clusterpodschedulingpolicies.kupid.gardener.cloud",
  namespace: "",
  name: "etcd",
};
const SCAN: PlacementKey = { kind: "drift-scan" };
const REPAIR: PlacementKey = { kind: "drift-repair" };
const ANNOTATION = "usher.dev/reapply";
const POOL = ["spec", "template", "spec", "nodeSelector", "pool"];
const POLICY = clusterPolicy("etcd", {});

/** Sets the pool `nvme` on everything that requests a reapply, and removes its earlier value. */
const module: Module = {
  ...moduleThat("placement", {
    mutate: ({ draft }) => {
      if (!draft.remove(["metadata", "annotations", ANNOTATION], undefined)) return allow();
      const finding = { policy: REF, rule: "nodeSelector", outcome: "applied", message: "" } as const;
      draft.set(POOL, "nvme", finding);
      return allow();
    },
  }),
  kinds: [clusterPodSchedulingPolicy],
  driftScan: {
    annotation: ANNOTATION,
    leftAlone: () => undefined,
    fieldSelector: ({ kind }) => (kind === "Pod" ? "spec.nodeName=" : undefined),
  },
};

function withTolerations(object: JsonObject, tolerations: readonly JsonObject[]): JsonObject {
  const spec = object["spec"] as { template: { spec: JsonObject } };
  const template = { ...spec.template, spec: { ...spec.template.spec, tolerations } };
  return { ...object, spec: { ...spec, template } };
}

const note = (): string =>
  JSON.stringify({
    placement: [{ policy: KEY, generation: 1, set: ["/spec/template/spec/nodeSelector/pool"] }],
  });

function stored(name: string, pool?: string): JsonObject {
  const metadata = { uid: `uid-${name}`, resourceVersion: "5" };
  if (pool === undefined) return deployment({ name, metadata });
  return deployment({
    name,
    metadata,
    annotations: { [PROVENANCE]: note() },
    spec: { nodeSelector: { pool } },
  });
}

/** A cluster with these Deployments, two per page, and a reconciler that runs as time passes. */
class Stage {
  readonly reconciler = placementReconciler(() => module);
  readonly state = this.reconciler.initialState();
  readonly assembly: Assembly;
  deployments: JsonObject[];
  now = 1_000_000;
  /** @default the wall clock does not jump */
  elapsed: number | undefined;
  asked: Need[] = [];

  constructor(deployments: JsonObject[], installation: Installation = DEFAULT_INSTALLATION) {
    this.deployments = deployments;
    this.assembly = new Assembly([module], installation, new Gates([]));
    this.change(came(POLICY));
  }

  change(...changes: Parameters<Assembly["apply"]>[0]): readonly PlacementKey[] {
    const context = { view: this.assembly.view, assembly: this.assembly };
    return this.assembly
      .apply(changes)
      .flatMap((change) => this.reconciler.keys(change, this.state, context));
  }

  answer(need: Need): Fact {
    this.asked.push(need);
    if ("get" in need) {
      const found = this.deployments.find((one) => stringAt(one, "metadata", "name") === need.get.name);
      return found === undefined ? { absent: "NotFound" } : { found, complete: true };
    }
    if (!("list" in need)) return { failed: "not expected" };
    if (need.list.resource === "jobs.batch") return { failed: "jobs: forbidden" };
    if (need.list.resource !== "deployments.apps") return { found: [], complete: true };
    const from = Number(need.list.continue ?? 0);
    const found = this.deployments.slice(from, from + 2) as Json[];
    const more = this.deployments.length > from + 2;
    return { found, complete: !more, ...(more ? { next: String(from + 2) } : {}) };
  }

  reconcile(key: PlacementKey): ReconcileResult<PlacementKey> {
    const facts = new Facts();
    for (;;) {
      const context: ReconcileContext<PlacementKey> = {
        view: this.assembly.view,
        facts,
        now: this.now,
        elapsed: this.elapsed ?? this.now,
        assembly: this.assembly,
      };
      const result = this.reconciler.reconcile(key, this.state, context);
      if (!("need" in result)) return result;
      for (const need of result.need) facts.set(need, this.answer(need));
    }
  }

  /** Reconciles as often as the result requeues it, until a scan is complete. */
  scan(): ReconcileResult<PlacementKey> {
    for (let looks = 0; looks < 100; looks++) {
      const result = this.reconcile(SCAN);
      if (result.enqueue?.some(({ kind }) => kind === "drift-repair")) continue;
      if (result.events !== undefined) return result;
      this.now += (result.requeueAfter ?? 0) * 1_000;
    }
    throw new Error("the scan does not end");
  }
}

let stage: Stage;

beforeEach(() => {
  stage = new Stage([stored("current", "nvme"), stored("stale", "etcd"), stored("missing")]);
});

describe("a scan", () => {
  test("counts the drift of workloads over pages, with examples", () => {
    expect(stage.state.counts?.of(KEY)).toBeUndefined();
    const { enqueue, events } = stage.scan();
    expect(stage.state.counts?.of(KEY)).toEqual({
      current: 1,
      stale: 1,
      orphaned: 0,
      missing: 1,
      examples: ["stale Deployment shop/stale", "missing Deployment shop/missing"],
      unread: ["jobs: forbidden"],
    });
    expect(stage.reconciler.figures?.(stage.state, stage.assembly)).toEqual(
      workloadFigures({ current: 1, stale: 1, orphaned: 0, missing: 1 }),
    );
    expect(enqueue).toEqual([STATUS_KEY]);
    expect(events).toMatchObject([
      {
        type: "Warning",
        reason: "WorkloadsBehind",
        regarding: REF,
        message: expect.stringContaining("1 stale, 1 missing"),
      },
    ]);
  });

  test("reads every kind of workload, of pods only those without a node, each whole", () => {
    stage.scan();
    const lists = stage.asked.flatMap((need) => ("list" in need ? [need.list] : []));
    expect(new Set(lists.map(({ resource }) => resource)).size).toBe(9);
    expect(lists.filter(({ resource }) => resource === "pods")).toEqual([
      { resource: "pods", managers: true, fieldSelector: "spec.nodeName=" },
    ]);
    // An unreadable page is retried before it is skipped.
    expect(lists.filter(({ resource }) => resource === "jobs.batch")).toHaveLength(3);
    expect(lists.filter(({ resource }) => resource === "deployments.apps")).toMatchObject([
      {},
      { continue: "2" },
    ]);
  });

  test("bounds the work of one step, and reads no page twice for it", () => {
    const turns = () => {
      let looks = 0;
      for (; looks < 100; looks++) {
        const result = stage.reconcile(SCAN);
        if (result.events !== undefined) break;
        stage.now += (result.requeueAfter ?? 0) * 1_000;
      }
      return looks;
    };
    const quick = turns();
    const found = stage.state.counts?.of(KEY);
    const pages = stage.asked.length;
    const large = Array.from({ length: 4_000 }, (_, i) => ({ key: `t${i}`, operator: "Exists" }));
    stage = new Stage(stage.deployments.map((object) => withTolerations(object, large)));
    // Two of three objects are on one page, and the second of them waits for the next turn.
    expect(turns()).toBe(quick + 1);
    expect(stage.state.counts?.of(KEY)).toEqual(found);
    expect(stage.asked).toHaveLength(pages);
  });

  test("reports only changes, and when no drift is left", () => {
    stage.scan();
    expect(stage.scan()).toMatchObject({ enqueue: [], events: [] });
    stage.deployments = [stored("current", "nvme")];
    expect(stage.scan()).toMatchObject({
      enqueue: [STATUS_KEY],
      events: [{ type: "Normal", reason: "WorkloadsCurrent" }],
    });
  });

  test("counts injections of deleted policies", () => {
    const text = note().replace("Policy/etcd", "Policy/gone");
    stage.deployments = [
      deployment({ annotations: { [PROVENANCE]: text }, spec: { nodeSelector: { pool: "etcd" } } }),
    ];
    stage.scan();
    expect(stage.reconciler.figures?.(stage.state, stage.assembly)).toContainEqual(
      workloadFigures({ orphaned: 1 })[0],
    );
  });
});

describe("when", () => {
  test("some seconds after the last of several changes, and not again for ten minutes", () => {
    expect(stage.reconcile(SCAN).requeueAfter).toBe(5);
    stage.now += 3_000;
    const changed = { ...POLICY, spec: { podSelector: {} } };
    expect(stage.change(came(changed))).toEqual([STATUS_KEY, SCAN]);
    expect(stage.reconcile(SCAN).requeueAfter).toBe(5);
    const { requeueAfter = 0 } = stage.scan();
    expect(requeueAfter).toBe(600);
  });

  test("after a change immediately, but never sooner than half a minute after the last began", () => {
    stage.scan();
    const ended = stage.now;
    stage.change(went(POLICY));
    const { requeueAfter = 0 } = stage.reconcile(SCAN);
    // It began when the first change had been quiet for five seconds.
    expect(stage.now + requeueAfter * 1_000).toBeCloseTo(1_005_000 + 30_000);
    stage.now = ended + 60_000;
    // The time between two pages: it has begun.
    expect(stage.reconcile(SCAN).requeueAfter).toBe(0.1);
  });

  test("a change during a scan triggers another", () => {
    stage.now += 5_000;
    stage.reconcile(SCAN);
    stage.now += 5_000;
    expect(stage.reconcile(SCAN).requeueAfter).toBe(0.1);
    stage.change(went(POLICY));
    expect(stage.scan().requeueAfter).toBeLessThan(31);
  });

  test("by the monotonic clock, also after the wall clock was set back by hours", () => {
    stage.scan();
    stage.elapsed = stage.now + 60_000;
    stage.now -= 36_000_000;
    stage.change(went(POLICY));
    expect(stage.reconcile(SCAN).requeueAfter).toBe(5);
  });

  test("neither for changed tallies nor for namespaces", () => {
    stage.scan();
    const { view } = stage.assembly;
    expect(stage.reconciler.tallyKeys?.(came(POLICY))).toEqual([STATUS_KEY]);
    const namespace = { resource: "namespaces", namespace: "", name: "x", object: undefined };
    expect(stage.reconciler.keys(namespace, stage.state, { view })).toEqual([]);
    expect(stage.reconcile(SCAN).requeueAfter).toBeGreaterThan(500);
  });

  test("never without an assembly", () => {
    const context = { view: stage.assembly.view, facts: new Facts(), now: 0 };
    expect(stage.reconciler.reconcile(SCAN, stage.state, context)).toEqual({ writes: [] });
  });
});

describe("drift repair", () => {
  const REPAIRING = { ...DEFAULT_INSTALLATION, settings: { placement: { repairDrift: true } } };

  test("writes nothing unless it is enabled", () => {
    stage.scan();
    expect(stage.reconcile(REPAIR).writes).toEqual([]);
  });

  test("repairs two workloads at a time, guarded by the resourceVersion that was read", () => {
    const names = ["a", "b", "c"];
    stage = new Stage([...names.map((name) => stored(name)), stored("fine", "nvme")], REPAIRING);
    stage.scan();
    const first = stage.reconcile(REPAIR);
    expect(first).toMatchObject({ requeueAfter: 10 });
    expect(first.writes).toEqual(
      ["a", "b"].map((name) => ({
        patch: [{ op: "add", path: "/metadata/annotations", value: { [ANNOTATION]: "usher" } }],
        of: { resource: "deployments.apps", namespace: "shop", name },
        resourceVersion: "5",
      })),
    );
    // Each page of a scan asks for repairs.
    stage.now += 4_000;
    expect(stage.reconcile(REPAIR)).toEqual({ writes: [], requeueAfter: 6 });
    stage.now += 6_000;
    const second = stage.reconcile(REPAIR);
    expect(second.writes).toMatchObject([{ of: { name: "c" } }]);
    expect(second).not.toHaveProperty("requeueAfter");
    expect(stage.reconcile(REPAIR).writes).toEqual([]);
  });

  test("leaves objects alone that were repaired or deleted in the meantime", () => {
    stage = new Stage([stored("a"), stored("b")], REPAIRING);
    stage.scan();
    stage.deployments = [stored("a", "nvme")];
    expect(stage.reconcile(REPAIR).writes).toEqual([]);
  });
});
