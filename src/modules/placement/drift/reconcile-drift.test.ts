import { beforeEach, describe, expect, test } from "vitest";
import { moduleThat } from "../../../../test/builders/module.ts";
import { deployment } from "../../../../test/builders/pod.ts";
import { came, clusterPolicy, went } from "../../../../test/builders/policy.ts";
import { Assembly } from "../../../core/evaluate/assembly.ts";
import { allow } from "../../../core/evaluate/decision.ts";
import { type Fact, Facts, type Need } from "../../../core/evaluate/need.ts";
import { type Json, type JsonObject, stringAt } from "../../../core/json.ts";
import { Gates } from "../../../core/module/gates.ts";
import { DEFAULT_INSTALLATION, type Installation } from "../../../core/module/installation.ts";
import type { Module } from "../../../core/module/module.ts";
import type { ReconcileContext, ReconcileResult } from "../../../core/module/reconciler.ts";
import { PROVENANCE } from "../../../core/provenance/origin.ts";
import { clusterPodSchedulingPolicy } from "../kinds.ts";
import { MOST_STEPS, WorkBudget } from "../merge/work-budget.ts";
import { type DriftReconciler, driftReconciler } from "./reconcile-drift.ts";

const REF = { kind: "ClusterPodSchedulingPolicy", name: "etcd" };
const KEY = "ClusterPodSchedulingPolicy/etcd";
const STATUS_KEY = "clusterpodschedulingpolicies.kupid.gardener.cloud /etcd";
const ANNOTATION = "usher.dev/reapply";
const POOL = ["spec", "template", "spec", "nodeSelector", "pool"];
const POLICY = clusterPolicy("etcd", {});

/** How much it is to judge one object, in steps. */
let work = 0;

/** Wants the pool `nvme` of everything that asks to be written anew, and takes back what it wrote before. */
const module: Module = {
  ...moduleThat("placement", {
    mutate: ({ object }) => {
      new WorkBudget().spend(work);
      if (!object.remove(["metadata", "annotations", ANNOTATION], undefined)) return allow();
      const finding = { policy: REF, rule: "nodeSelector", outcome: "applied", message: "" } as const;
      object.set(POOL, "nvme", finding);
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

/** A cluster with these Deployments, of which two stand on a page, and a reconciler that looks at it as time passes. */
class Stage {
  readonly reconciler: DriftReconciler = driftReconciler(() => module);
  readonly assembly: Assembly;
  deployments: JsonObject[];
  now = 1_000_000;
  asked: Need[] = [];

  constructor(deployments: JsonObject[], installation: Installation = DEFAULT_INSTALLATION) {
    this.deployments = deployments;
    this.assembly = new Assembly([module], installation, new Gates([]));
    this.change(came(POLICY));
  }

  change(...changes: Parameters<Assembly["apply"]>[0]): readonly string[] {
    return this.assembly.apply(changes).flatMap((change) => this.reconciler.keys(change, this.assembly.view));
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

  plan(key: string): ReconcileResult {
    const facts = new Facts();
    for (;;) {
      const context: ReconcileContext = {
        view: this.assembly.view,
        facts,
        now: this.now,
        assembly: this.assembly,
      };
      const result = this.reconciler.plan(key, context);
      if (!("need" in result)) return result;
      for (const need of result.need) facts.set(need, this.answer(need));
    }
  }

  /** Looks as often as the reconciler asks for it, until a walk is over. */
  walk(): ReconcileResult {
    for (let looks = 0; looks < 100; looks++) {
      const plan = this.plan("survey");
      if (plan.also?.includes("mend")) continue;
      if (plan.events !== undefined) return plan;
      this.now += (plan.again ?? 0) * 1_000;
    }
    throw new Error("the walk does not end");
  }
}

let stage: Stage;

beforeEach(() => {
  work = 0;
  stage = new Stage([stored("current", "nvme"), stored("stale", "etcd"), stored("missing")]);
});

describe("a walk", () => {
  test("counts how workloads stand to a policy, over pages, with examples of those behind", () => {
    expect(stage.reconciler.workloads(stage.assembly.view, KEY)).toBeUndefined();
    const { also, events } = stage.walk();
    expect(stage.reconciler.workloads(stage.assembly.view, KEY)).toEqual({
      current: 1,
      stale: 1,
      orphaned: 0,
      missing: 1,
      examples: ["stale Deployment shop/stale", "missing Deployment shop/missing"],
      unread: ["jobs: forbidden"],
    });
    expect(stage.reconciler.figures(stage.assembly.view)).toEqual({
      current: 1,
      stale: 1,
      orphaned: 0,
      missing: 1,
    });
    expect(also).toEqual([STATUS_KEY]);
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
    stage.walk();
    const lists = stage.asked.flatMap((need) => ("list" in need ? [need.list] : []));
    expect(new Set(lists.map(({ resource }) => resource)).size).toBe(9);
    expect(lists.filter(({ resource }) => resource === "pods")).toEqual([
      { resource: "pods", managers: true, fieldSelector: "spec.nodeName=" },
    ]);
    // What can't be read is tried again before it is given up.
    expect(lists.filter(({ resource }) => resource === "jobs.batch")).toHaveLength(3);
    expect(lists.filter(({ resource }) => resource === "deployments.apps")).toMatchObject([
      {},
      { continue: "2" },
    ]);
  });

  test("judges no more in one go than is little work, and reads no page twice for it", () => {
    const turns = () => {
      let looks = 0;
      for (; looks < 100; looks++) {
        const plan = stage.plan("survey");
        if (plan.events !== undefined) break;
        stage.now += (plan.again ?? 0) * 1_000;
      }
      return looks;
    };
    const quick = turns();
    const found = stage.reconciler.workloads(stage.assembly.view, KEY);
    const pages = stage.asked.length;
    stage = new Stage(stage.deployments);
    work = 2 * MOST_STEPS;
    // Of three objects two stand on one page, and the second of them waits for the next turn.
    expect(turns()).toBe(quick + 1);
    expect(stage.reconciler.workloads(stage.assembly.view, KEY)).toEqual(found);
    expect(stage.asked).toHaveLength(pages);
  });

  test("has nothing to say of what has not changed, and says when all is well again", () => {
    stage.walk();
    expect(stage.walk()).toMatchObject({ also: [], events: [] });
    stage.deployments = [stored("current", "nvme")];
    expect(stage.walk()).toMatchObject({
      also: [STATUS_KEY],
      events: [{ type: "Normal", reason: "WorkloadsCurrent" }],
    });
  });

  test("what is of a policy that is gone is counted as well", () => {
    const text = note().replace("Policy/etcd", "Policy/gone");
    stage.deployments = [
      deployment({ annotations: { [PROVENANCE]: text }, spec: { nodeSelector: { pool: "etcd" } } }),
    ];
    stage.walk();
    expect(stage.reconciler.figures(stage.assembly.view)).toMatchObject({ orphaned: 1 });
  });
});

describe("when", () => {
  test("some seconds after the last of several changes, and not again for ten minutes", () => {
    expect(stage.plan("survey").again).toBe(5);
    stage.now += 3_000;
    const changed = { ...POLICY, spec: { podSelector: {} } };
    expect(stage.change(came(changed))).toEqual(["survey"]);
    expect(stage.plan("survey").again).toBe(5);
    const { again = 0 } = stage.walk();
    expect(again).toBe(600);
  });

  test("after a change at once, but never sooner than half a minute after the last began", () => {
    stage.walk();
    const ended = stage.now;
    stage.change(went(POLICY));
    const { again = 0 } = stage.plan("survey");
    // It began when the first change had been quiet for five seconds.
    expect(stage.now + again * 1_000).toBeCloseTo(1_005_000 + 30_000);
    stage.now = ended + 60_000;
    // The time between two pages: it has begun.
    expect(stage.plan("survey").again).toBe(0.1);
  });

  test("a change during a walk makes another due", () => {
    stage.now += 5_000;
    stage.plan("survey");
    stage.now += 5_000;
    expect(stage.plan("survey").again).toBe(0.1);
    stage.change(went(POLICY));
    expect(stage.walk().again).toBeLessThan(31);
  });

  test("counts that changed are no change, and neither are namespaces", () => {
    stage.walk();
    const { view } = stage.assembly;
    for (const object of view.list("clusterpodschedulingpolicies.kupid.gardener.cloud"))
      stage.reconciler.keys({ ...came(POLICY), object }, view);
    stage.reconciler.keys({ resource: "namespaces", namespace: "", name: "x", object: undefined }, view);
    expect(stage.plan("survey").again).toBeGreaterThan(500);
  });

  test("nowhere where nobody decides", () => {
    const context = { view: stage.assembly.view, facts: new Facts(), now: 0 };
    expect(stage.reconciler.plan("survey", context)).toEqual({ writes: [] });
  });
});

describe("mending", () => {
  const MENDING = { ...DEFAULT_INSTALLATION, settings: { placement: { mend: true } } };

  test("asks for nothing unless it is switched on", () => {
    stage.walk();
    expect(stage.plan("mend").writes).toEqual([]);
  });

  test("asks for those that lack something, two at a time, bound to what was read", () => {
    const names = ["a", "b", "c"];
    stage = new Stage([...names.map((name) => stored(name)), stored("fine", "nvme")], MENDING);
    stage.walk();
    const first = stage.plan("mend");
    expect(first).toMatchObject({ again: 10 });
    expect(first.writes).toEqual(
      ["a", "b"].map((name) => ({
        patch: [{ op: "add", path: "/metadata/annotations", value: { [ANNOTATION]: "usher" } }],
        of: { resource: "deployments.apps", namespace: "shop", name },
        resourceVersion: "5",
      })),
    );
    const second = stage.plan("mend");
    expect(second.writes).toMatchObject([{ of: { name: "c" } }]);
    expect(second).not.toHaveProperty("again");
    expect(stage.plan("mend").writes).toEqual([]);
  });

  test("leaves alone what somebody mended meanwhile, or deleted", () => {
    stage = new Stage([stored("a"), stored("b")], MENDING);
    stage.walk();
    stage.deployments = [stored("a", "nvme")];
    expect(stage.plan("mend").writes).toEqual([]);
  });
});
