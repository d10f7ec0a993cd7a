import { describe, expect, test, vi } from "vitest";
import { z } from "zod";
import { assemblyOf } from "../../../test/builders/evaluation.ts";
import { kindOf } from "../../../test/builders/kind.ts";
import { moduleThat } from "../../../test/builders/module.ts";
import { node as nodeOf } from "../../../test/builders/node.ts";
import { allow } from "../decision/decision.ts";
import { Gates } from "../installation/gates.ts";
import { DEFAULT_INSTALLATION } from "../installation/installation.ts";
import { at, type Json, type JsonObject, stringAt } from "../json.ts";
import type { Kind } from "../policy/kind.ts";
import { refOf } from "../policy/policy-ref.ts";
import { problem } from "../policy/problem.ts";
import { projector } from "../view/projection.ts";
import type { Change } from "../view/view.ts";
import { Assembly } from "./assembly.ts";
import type { Evaluator, Module, Read } from "./module.ts";

const KIND = kindOf("test.example", "Rule", {
  versions: [
    { name: "v1", storage: true, spec: z.strictObject({ say: z.string() }) },
    {
      name: "v0",
      storage: false,
      spec: z.strictObject({ report: z.string() }),
      upgrade: (object) => {
        if (at(object, "spec", "report") === "!") throw new Error("can't be upgraded");
        return { ...object, spec: { say: at(object, "spec", "report") ?? null } };
      },
    },
  ],
  // A new object each time, like real policies.
  prepare: (object) => {
    const say = stringAt(object, "spec", "say");
    if (say === "throw") throw new Error("broke");
    if (say === undefined) return { policy: undefined, problems: [problem(["spec", "say"], "is missing")] };
    return { policy: { say }, problems: [] };
  },
});

const NODES: Read = {
  resource: "nodes",
  group: "",
  version: "v1",
  kind: "Node",
  scope: "Cluster",
  keep: [
    ["metadata", "labels"],
    ["spec", "taints"],
  ],
  indexes: [{ name: "zone", values: (node) => [stringAt(node, "metadata", "labels", "zone") ?? ""] }],
};

type Said = { readonly say: string };

/** A module that records its policies, updated in place or not, and counts its assemblies. */
function talker(inPlace: boolean) {
  const assembled: number[] = [];
  const known = new WeakMap<Evaluator, () => string[]>();
  const module: Module = {
    ...moduleThat("talker", {}),
    kinds: [KIND],
    reads: [NODES],
    hooks: vi.fn((_policies, view) => [
      {
        name: `talker-${view.count("nodes")}`,
        module: "talker",
        phase: "mutate" as const,
        failure: "open" as const,
        tooLarge: "allow" as const,
        timeoutSeconds: 1,
        sideEffects: "None" as const,
        rules: [],
      },
    ]),
    assemble: (policies) => {
      const mine = new Set(policies as Said[]);
      assembled.push(mine.size);
      const evaluator: Evaluator = {
        mutate: () => allow(),
        ...(inPlace
          ? {
              update: (removed, added) => {
                for (const one of removed) expect(mine.delete(one as Said)).toBe(true);
                for (const one of added) mine.add(one as Said);
              },
            }
          : {}),
      };
      known.set(evaluator, () => [...mine].map(({ say }) => say).sort());
      return evaluator;
    },
  };
  const says = (assembly: Assembly): string[] => {
    const evaluator = assembly.evaluator("talker");
    return (evaluator === undefined ? undefined : known.get(evaluator)?.()) ?? [];
  };
  return { module, says, assembled };
}

const rule = (name: string, say: Json | undefined, change: JsonObject = {}): Change => ({
  resource: "rules.test.example",
  namespace: "",
  name,
  object: {
    apiVersion: "test.example/v1",
    kind: "Rule",
    metadata: { name, generation: 1 },
    spec: say === undefined ? {} : { say },
    ...change,
  },
});
const gone = (change: Change): Change => ({ ...change, object: undefined });
const many = (count: number) => Array.from({ length: count }, (_, i) => rule(`r${i}`, `s${i}`));

const node = (name: string, change: JsonObject = {}): Change => ({
  resource: "nodes",
  namespace: "",
  name,
  object: { ...nodeOf(name, { zone: "a" }), ...change },
});

describe("policies", () => {
  test.each([true, false])("are added, changed and removed (in place: %s)", (inPlace) => {
    const { module, says } = talker(inPlace);
    const assembly = assemblyOf([module], many(20));
    assembly.apply([rule("r1", "changed"), gone(rule("r2", "")), rule("new", "new")]);
    const expected = many(20).map((_, i) => (i === 1 ? "changed" : `s${i}`));
    expect(says(assembly)).toEqual([...expected.filter((say) => say !== "s2"), "new"].sort());
  });

  test("one change among many is made in place, many at once are assembled again", () => {
    const { module, assembled } = talker(true);
    const assembly = assemblyOf([module], many(20));
    expect(assembled).toEqual([0, 20]);
    assembly.apply([rule("r1", "changed")]);
    expect(assembled).toEqual([0, 20]);
    assembly.apply(many(20).map((change) => gone(change)));
    expect(assembled).toEqual([0, 20, 0]);
  });

  test("a policy that changes twice in one step counts once, in its final state", () => {
    const { module, says } = talker(true);
    const assembly = assemblyOf([module], many(40));
    assembly.apply([rule("r1", "once"), rule("r1", "twice"), rule("x", "x"), gone(rule("x", ""))]);
    expect(says(assembly)).toEqual([...many(40).map((_, i) => (i === 1 ? "twice" : `s${i}`))].sort());
    // And it is removed when deleted.
    assembly.apply([gone(rule("r1", ""))]);
    expect(says(assembly)).not.toContain("once");
    expect(says(assembly)).not.toContain("twice");
  });

  test("a policy may be deleted and recreated in one step", () => {
    const { module, says } = talker(true);
    const assembly = assemblyOf([module], many(40));
    assembly.apply([gone(rule("r1", "")), rule("r1", "back")]);
    expect(says(assembly)).toContain("back");
    expect(says(assembly)).toHaveLength(40);
  });

  test("an invalid policy affects no other, and its problems are known", () => {
    const { module, says } = talker(true);
    const upgraded = rule("old", undefined, { apiVersion: "test.example/v0", spec: { report: "of old" } });
    const stuck = rule("stuck", undefined, { apiVersion: "test.example/v0", spec: { report: "!" } });
    const assembly = assemblyOf(
      [module],
      [rule("a", "a"), rule("bad", 17), rule("worse", "throw"), stuck, upgraded, rule("z", "z")],
    );
    expect(says(assembly)).toEqual(["a", "of old", "z"]);
    const wrong = [...assembly.policies("talker")].filter(({ problems }) => problems.length > 0);
    expect(wrong.map(({ ref, policy }) => [ref.name, policy])).toEqual([
      ["bad", undefined],
      ["worse", undefined],
      ["stuck", undefined],
    ]);
    // Repaired, it counts.
    assembly.apply([rule("bad", "good")]);
    expect(says(assembly)).toContain("good");
  });

  test.each<[string, JsonObject]>([
    ["no metadata", { metadata: null }],
    ["metadata a list", { metadata: [] }],
    ["a spec that is a string", { spec: "x" }],
    ["no apiVersion", { apiVersion: 17 }],
    ["__proto__ in it", JSON.parse('{"__proto__": {"say": "x"}, "spec": {"__proto__": {"say": "x"}}}')],
  ])("hostile: %s", (_what, change) => {
    const { module, says } = talker(true);
    const assembly = assemblyOf([module], [rule("a", "a"), rule("hostile", "h", change), rule("z", "z")]);
    expect(says(assembly)).toEqual(expect.arrayContaining(["a", "z"]));
  });

  test("are named in findings by kind, name and state", () => {
    const object = { metadata: { name: "n", namespace: "shop", uid: "u", generation: 3 } };
    expect(refOf(KIND, object)).toEqual({ kind: "Rule", name: "n", uid: "u", generation: 3 });
    const namespaced: Kind = { ...KIND, scope: "Namespaced" };
    expect(refOf(namespaced, object)).toMatchObject({ namespace: "shop" });
    expect(refOf(namespaced, { metadata: { name: "n" } })).toEqual({
      kind: "Rule",
      name: "n",
      namespace: "default",
    });
    expect(refOf(KIND, {})).toEqual({ kind: "Rule", name: "" });
  });
});

describe("no change", () => {
  const assembly = () => assemblyOf([talker(true).module], [rule("a", "a"), node("n")]);

  test.each<[string, Change]>([
    ["a node's heartbeat", node("n", { status: { conditions: [{ lastHeartbeatTime: "now" }] } })],
    ["a field that no module keeps", node("n", { spec: { podCIDR: "10.0.0.0/8" } })],
    [
      "a policy's status and the managers of its fields",
      rule("a", "a", {
        status: { matched: 3 },
        metadata: { name: "a", generation: 1, resourceVersion: "9", managedFields: [{}] },
      }),
    ],
    ["a resource that no module reads", { ...node("n"), resource: "leases.coordination.k8s.io" }],
    ["a deletion of a missing object", gone(node("other"))],
  ])("%s", (_what, change) => {
    const one = assembly();
    const { hooks } = one;
    expect(one.apply([change])).toEqual([]);
    expect(one.hooks).toBe(hooks);
  });

  test.each<[string, Change]>([
    ["a taint", node("n", { spec: { taints: [{ key: "x" }] } })],
    [
      "a node that is about to be deleted",
      node("n", { metadata: { name: "n", labels: { zone: "a" }, deletionTimestamp: "now" } }),
    ],
    ["a namesake", node("n", { metadata: { name: "n", labels: { zone: "a" }, uid: "another" } })],
    ["a policy's new generation", rule("a", "a", { metadata: { name: "a", generation: 2 } })],
  ])("but %s is a change", (_what, change) => {
    expect(assembly().apply([change])).toHaveLength(1);
  });

  test("hooks are computed again after a change", () => {
    const { module } = talker(true);
    const one = assemblyOf([module], [node("n")]);
    expect(one.hooks.map(({ name }) => name)).toEqual(["talker-1"]);
    one.apply([node("m")]);
    expect(one.hooks.map(({ name }) => name)).toEqual(["talker-2"]);
    expect(one.hooks).toBe(one.hooks);
  });

  test("hooks are computed from prepared policies, and again only for the module that reads the changed object", () => {
    const { module } = talker(true);
    const other: Module = { ...moduleThat("other", {}), hooks: vi.fn(() => []) };
    const one = assemblyOf([module, other], [node("n"), rule("a", "said"), rule("b", "also said")]);
    for (let i = 0; i < 2; i++)
      expect([one.hooks, one.declaredHooks].map(({ length }) => length)).toEqual([1, 1]);
    expect(vi.mocked(module.hooks).mock.lastCall?.[0]).toEqual([{ say: "said" }, { say: "also said" }]);
    const [mine, others] = [module, other].map(({ hooks }) => vi.mocked(hooks).mock.calls.length);
    one.apply([node("m")]);
    expect(one.hooks.map(({ name }) => name)).toEqual(["talker-2"]);
    expect(vi.mocked(module.hooks)).toHaveBeenCalledTimes((mine ?? 0) + 1);
    expect(vi.mocked(other.hooks)).toHaveBeenCalledTimes(others ?? 0);
    // Served groups and the version of the API server affect every module.
    one.serve("clusterversions.config.openshift.io");
    expect(one.hooks).toHaveLength(1);
    expect(vi.mocked(other.hooks)).toHaveBeenCalledTimes((others ?? 0) + 1);
  });

  test("lists the resources to watch", () => {
    const one = assembly();
    expect(["nodes", "rules.test.example", "pods", "rules"].map((name) => one.wants(name))).toEqual([
      true,
      true,
      false,
      false,
    ]);
  });
});

describe("an assembly with supposed changes", () => {
  test.each([true, false])("neither side sees later changes of the other (in place: %s)", (inPlace) => {
    const { module, says } = talker(inPlace);
    const real = assemblyOf([module], [...many(20), node("n")]);
    const supposed = real.with([rule("r1", "supposed")]);
    const before = says(real);
    expect(before).toContain("s1");
    expect(says(supposed)).toContain("supposed");

    real.apply([rule("r2", "really"), node("m")]);
    supposed.apply([rule("r3", "only supposed"), gone(node("n"))]);

    expect(says(real)).toEqual(expect.arrayContaining(["s1", "really", "s3"]));
    expect(says(supposed)).toEqual(expect.arrayContaining(["supposed", "s2", "only supposed"]));
    expect([real.view.count("nodes"), supposed.view.count("nodes")]).toEqual([2, 0]);
    expect([...real.view.lookup("nodes", "zone", "a")]).toHaveLength(2);
    expect(real.hooks.map(({ name }) => name)).toEqual(["talker-2"]);
    expect(supposed.hooks.map(({ name }) => name)).toEqual(["talker-0"]);
    expect([...real.policies("talker")].find(({ ref }) => ref.name === "r3")?.policy).toEqual({ say: "s3" });
  });

  test("a changed node keeps the same policies", () => {
    const { module, says, assembled } = talker(true);
    const real = assemblyOf([module], many(8));
    const times = assembled.length;
    const supposed = real.with([node("n")]);
    expect(says(supposed)).toEqual(says(real));
    expect(assembled).toHaveLength(times);
    // The evaluator is shared now: a change on either side must create its own.
    real.apply([rule("r1", "real")]);
    expect(says(supposed)).toContain("s1");
    expect(says(real)).toContain("real");
    supposed.apply([rule("r2", "supposed")]);
    expect(says(real)).toContain("s2");
  });

  test("objects that no module reads are neither stored nor served", () => {
    const real = assemblyOf([talker(true).module]);
    const supposed = real.with([{ ...node("n"), resource: "leases" }]);
    expect(supposed.view.served("leases")).toBe(false);
    expect(supposed.view.count("leases")).toBe(0);
  });
});

test("runs the safeguarded hooks, not the declared ones", () => {
  const everything = moduleThat("guard", {
    validate: () => allow(),
    failure: "closed",
    hook: {
      rules: [{ groups: [""], versions: ["v1"], resources: ["pods", "nodes"], operations: ["CREATE"] }],
    },
  });
  const assembly = assemblyOf([everything]);
  expect(assembly.declaredHooks.map(({ name, failure }) => `${name} ${failure}`)).toEqual([
    "guard-validate closed",
  ]);
  expect(assembly.hooks.map(({ name, failure }) => `${name} ${failure}`)).toEqual([
    "guard-validate closed",
    "guard-validate-open open",
  ]);
});

describe("project", () => {
  test("keeps the named fields, and always the identity", () => {
    const object = {
      apiVersion: "v1",
      kind: "Node",
      metadata: { name: "n", namespace: "x", uid: "u", labels: { a: "b" }, annotations: { big: "x" } },
      spec: { taints: [{ key: "k" }], podCIDR: "x" },
      status: {},
    };
    expect(
      projector([
        ["metadata", "labels"],
        ["spec", "taints"],
        ["spec", "missing", "deep"],
      ])(object),
    ).toEqual({
      apiVersion: "v1",
      kind: "Node",
      metadata: { name: "n", namespace: "x", uid: "u", labels: { a: "b" } },
      spec: { taints: [{ key: "k" }] },
    });
  });

  test("does not change the object, also if one path is inside another", () => {
    const object = { metadata: { name: "n" }, spec: { a: { b: 1 }, c: 2 } };
    const before = JSON.stringify(object);
    expect(projector([["spec"], ["spec", "a", "b"]])(object)).toEqual(object);
    expect(projector([["spec", "a", "b"], ["spec"]])(object)).toEqual(object);
    expect(JSON.stringify(object)).toBe(before);
  });

  test.each<Json>([null, "x", [], { name: { deep: true } }])("metadata %j", (metadata) => {
    expect(() => projector([["metadata", "labels"]])({ metadata })).not.toThrow();
  });
});

test("a new assembly of no modules", () => {
  const empty = new Assembly([], DEFAULT_INSTALLATION, new Gates([]));
  expect(empty.hooks).toEqual([]);
  expect(empty.apply([node("n")])).toEqual([]);
  expect(empty.evaluator("talker")).toBeUndefined();
  expect([...empty.policies("talker")]).toEqual([]);
});
