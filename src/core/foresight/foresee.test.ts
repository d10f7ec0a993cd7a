import { describe, expect, test } from "vitest";
import { assemblyOf } from "../../../test/builders/evaluation.ts";
import { moduleThat } from "../../../test/builders/module.ts";
import { node } from "../../../test/builders/node.ts";
import { controlledBy, deployment, pod, workload } from "../../../test/builders/pod.ts";
import { allow, deny } from "../decision/decision.ts";
import type { JsonObject } from "../json.ts";
import { labelsOf, nameOf, namespaceOf } from "../kubernetes/object.ts";
import type { Module } from "../module/module.ts";
import { objectKey } from "../view/view.ts";
import { foresee, isEmpty } from "./foresee.ts";
import { World } from "./world.ts";

/** Sets the pool of the label `pool` of the node "policy", and refuses every pod if there is none. */
const seating: Module = {
  ...moduleThat("seating", {
    mutate: ({ draft, view, request }) => {
      const pool = labelsOf(view.get("nodes", "", "policy") ?? {})?.["pool"];
      if (request.kind.kind === "Node" || typeof pool !== "string" || pool === "none") return allow();
      const path = [
        ...(request.kind.kind === "Pod" ? [] : ["spec", "template"]),
        "spec",
        "nodeSelector",
        "pool",
      ];
      draft.set(path, pool, { rule: "pool", outcome: "applied", message: `pool ${pool}`, path });
      return allow();
    },
    validate: ({ view }) =>
      labelsOf(view.get("nodes", "", "policy") ?? {})?.["pool"] === "none"
        ? deny({ code: 403, reason: "Forbidden" }, [
            { rule: "pool", outcome: "violated", message: "no pool" },
          ])
        : allow(),
  }),
  reads: [
    {
      resource: "nodes",
      group: "",
      version: "v1",
      kind: "Node",
      scope: "Cluster",
      keep: [["metadata", "labels"]],
    },
  ],
};

const ALLOCATABLE = { status: { allocatable: { cpu: "4", memory: "8Gi", pods: "110" } } };
const policyNode = (pool: string) => node("policy", { pool, kind: "policy" }, ALLOCATABLE);

function worldOf(objects: Readonly<Record<string, readonly JsonObject[]>>): World {
  const assembly = assemblyOf([seating]);
  const tables = new Map<string, Map<string, JsonObject>>();
  for (const [resource, list] of Object.entries(objects)) {
    tables.set(resource, new Map(list.map((one) => [objectKey(namespaceOf(one), nameOf(one)), one])));
    assembly.apply(
      list.map((object) => ({ resource, namespace: namespaceOf(object), name: nameOf(object), object })),
    );
  }
  return new World(assembly, async (needs) => needs.map(() => ({ absent: "NotFound" as const })), tables);
}

const edit = (pool: string) => [
  { resource: "nodes", namespace: "", name: "policy", object: policyNode(pool) },
];
const OPTIONS = { now: 0, placements: false, priorityClasses: [] };

const WEB = deployment({ name: "web" });
const SET = workload("apps/v1", "ReplicaSet", {
  name: "web-1",
  owner: controlledBy("apps/v1", "Deployment", "web"),
});
const ITS_POD = pod({ name: "web-1-a", owner: controlledBy("apps/v1", "ReplicaSet", "web-1") });
const ALONE = pod({ name: "alone" });
const OVER = { ...pod({ name: "over" }), status: { phase: "Succeeded" } };

const CLUSTER = {
  nodes: [policyNode("a"), node("w-a", { pool: "a" }, ALLOCATABLE), node("w-b", { pool: "b" }, ALLOCATABLE)],
  "deployments.apps": [WEB],
  "replicasets.apps": [SET],
  pods: [ITS_POD, ALONE, OVER],
};

describe("two worlds", () => {
  test("that are the same differ in nothing", async () => {
    const world = worldOf(CLUSTER);
    const foresight = await foresee(world, world, { ...OPTIONS, placements: true });
    expect(isEmpty(foresight)).toBe(true);
    expect(foresight.looked).toEqual({ workloads: 2, pods: 2, nodes: 3 });
  });

  test("show changes by workload: owned and finished pods are not evaluated separately", async () => {
    const world = worldOf(CLUSTER);
    const { workloads } = await foresee(world, world.with(edit("b")), OPTIONS);
    expect(workloads.map(({ object, effect, pods }) => [object.kind, object.name, effect, pods])).toEqual([
      ["Pod", "alone", "changed", 1],
      ["Deployment", "web", "changed", 1],
    ]);
    expect(workloads[0]?.lines).toEqual([
      { sign: "-", message: "pool a", by: "seating" },
      { sign: "+", message: "pool b", by: "seating" },
    ]);
  });

  test("show refusals, workloads admitted again, and running pods that would not be admitted", async () => {
    const world = worldOf(CLUSTER);
    const refusing = world.with(edit("none"));
    const there = await foresee(world, refusing, OPTIONS);
    expect(there.workloads.map(({ effect }) => effect)).toEqual(["refused", "refused"]);
    expect(there.notAdmitted.map(({ object, pods }) => [object.name, pods])).toEqual([
      ["alone", 1],
      ["web", 1],
    ]);
    const back = await foresee(refusing, world, OPTIONS);
    expect(back.workloads.map(({ effect }) => effect)).toEqual(["admitted", "admitted"]);
    expect(back.notAdmitted).toEqual([]);
  });

  test("show where pods may run, and which pools empty and fill", async () => {
    const world = worldOf(CLUSTER);
    const { workloads, pools } = await foresee(world, world.with(edit("b")), {
      ...OPTIONS,
      placements: true,
    });
    expect(workloads[0]?.nodes).toMatchObject({
      before: { fits: 2, total: 3 },
      after: { fits: 2, total: 3 },
      gained: ["w-b"],
      lost: [{ node: "w-a", reason: expect.stringContaining("node affinity/selector") }],
    });
    expect(pools.map(({ pool, effect }) => [pool, effect])).toEqual([
      ["a", "empties"],
      ["b", "fills"],
    ]);
  });

  test("a pod that fills its node may run there again, because it is replaced", async () => {
    const full = {
      ...node("only", { pool: "a" }, { status: { allocatable: { cpu: "1", memory: "1Gi", pods: "1" } } }),
    };
    const running = pod({
      name: "alone",
      spec: { nodeName: "only", containers: [{ name: "c", image: "c:1" }] },
    });
    const other = pod({ name: "other", spec: { containers: [{ name: "c", image: "c:1" }] } });
    const world = worldOf({ nodes: [policyNode("b"), full], pods: [running, other] });
    const tainted = { ...policyNode("a"), spec: { taints: [{ key: "x", effect: "NoSchedule" }] } };
    const after = world.with([{ resource: "nodes", namespace: "", name: "policy", object: tainted }]);
    const { workloads } = await foresee(world, after, { ...OPTIONS, placements: true });
    const reach = (name: string) => workloads.find(({ object }) => object.name === name)?.nodes;
    expect(reach("alone")).toMatchObject({ gained: ["only"], after: { fits: 1 } });
    expect(reach("other")?.after?.rejected.map(({ reason }) => reason)).toContain("Too many pods");
  });

  test("neither of them is changed by the comparison", async () => {
    const world = worldOf(CLUSTER);
    const copy = structuredClone(CLUSTER);
    await foresee(world, world.with(edit("b")), { ...OPTIONS, placements: true });
    expect(CLUSTER).toEqual(copy);
    expect(labelsOf(world.assembly.view.get("nodes", "", "policy") ?? {})).toMatchObject({ pool: "a" });
  });
});

test("facts of a world are those of its edits, then of its read objects, then of the cluster", async () => {
  const world = worldOf(CLUSTER).with([
    ...edit("b"),
    { resource: "nodes", namespace: "", name: "w-a", object: undefined },
    { resource: "pods", namespace: "lab", name: "new", object: pod({ name: "new", namespace: "lab" }) },
  ]);
  const get = (name: string) => ({ get: { resource: "nodes", name } });
  expect(await world.fetch([get("policy"), get("w-a"), get("w-b"), get("unknown")])).toMatchObject([
    { found: { metadata: { labels: { pool: "b" } } } },
    { absent: "NotFound" },
    { found: { metadata: { name: "w-b" } } },
    { absent: "NotFound" },
  ]);
});
