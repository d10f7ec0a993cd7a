// Modules keep no state of their own. Two clusters on one instance of a module do not affect each other, and cached
// values (compiled patterns, desired states, indexes that are updated in place) change no result.
import { globSync, readFileSync } from "node:fs";
import fc from "fast-check";
import { afterAll, describe, expect, test, vi } from "vitest";
import type { JsonObject } from "../src/core/json.ts";
import type { Module } from "../src/core/module/module.ts";
import { PendingNodes } from "../src/modules/node-labels/desired/pending-nodes.ts";
import { nodeLabels } from "../src/modules/node-labels/index.ts";
import { placement } from "../src/modules/placement/index.ts";
import { History, type HistoryOptions, type Step } from "./builders/history.ts";
import { arrived, left, node, owned, rule } from "./builders/node.ts";
import { deployment, pod } from "./builders/pod.ts";
import { came, clusterPolicy, namespace, namespacedPolicy, went } from "./builders/policy.ts";
import { requestFor } from "./builders/request.ts";

const DEDICATED = [{ key: "dedicated", value: "edge", effect: "NoSchedule" }];

const nodeObjects = [
  rule("a", { nodeNamePatterns: ["w-.*"], labels: { "x.io/a": "1", rack: "7" } }),
  rule("a", { nodeNamePatterns: ["w-.*"], labels: { "x.io/a": "2" } }, { generation: 2 }),
  rule("b", { nodeNamePatterns: ["w-[01]"], labels: { "x.io/a": "3" }, taints: DEDICATED }),
  rule("b", { nodeNamePatterns: ["v-1"], annotations: { "x.io/n": "1" }, startupTaint: true }),
  rule("c", { nodeSelector: { matchLabels: { rack: "7" } }, labels: { "x.io/c": "c" }, priority: 3 }),
  rule("d", { nodeNamePatterns: ["["], taints: DEDICATED }),
  owned("o", { domain: "x.io" }, { creationTimestamp: "2023-11-14T22:13:00Z" }),
  owned("o", { domain: "x.io", namePattern: "a|c" }, { generation: 2 }),
  node("w-0", { rack: "7" }),
  node("w-0", { "x.io/a": "1", "x.io/old": "y" }, { spec: { taints: DEDICATED } }),
  node("w-1", { "x.io/c": "?" }),
  node("v-1", {}, { spec: { taints: [{ key: "usher.dev/starting", effect: "NoSchedule" }] } }),
];

const nodeStep: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(...nodeObjects).map((one) => ({ change: arrived(one) })) },
  { weight: 1, arbitrary: fc.constantFrom(...nodeObjects).map((one) => ({ change: left(one) })) },
  {
    weight: 2,
    arbitrary: fc
      .constantFrom("w-0", "v-1", "x")
      .map((name) => ({ request: requestFor(node(name, { rack: "7" }), { namespace: "" }) })),
  },
);

const ZONE = [{ matchExpressions: [{ key: "zone", operator: "In", values: ["a", "b"] }] }];
const EVERYWHERE = { podSelector: {}, namespaceSelector: {} };

const policyObjects = [
  clusterPolicy("p", { ...EVERYWHERE, nodeSelector: { pool: "etcd" } }),
  clusterPolicy("p", { ...EVERYWHERE, nodeSelector: { pool: "nvme" } }, { generation: 2 }),
  clusterPolicy("q", {
    ...EVERYWHERE,
    affinity: {
      nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: ZONE } },
    },
  }),
  clusterPolicy("r", { ...EVERYWHERE, tolerations: [{ key: "dedicated", operator: "Exists" }] }),
  namespacedPolicy("shop", "s", { podSelector: { matchLabels: { app: "web" } }, nodeSelector: { a: "b" } }),
  namespacedPolicy("shop", "s", { podSelector: {}, nodeSelector: { pool: "other" } }),
  clusterPolicy("broken", {
    podSelector: {},
    namespaceSelector: {},
    nodeSelector: { pool: "no label value" },
  }),
  namespace("shop", { team: "a" }),
];

const pods: readonly JsonObject[] = [
  pod(),
  pod({ labels: { app: "web" } }),
  pod({ spec: { containers: [], nodeSelector: { pool: "mine" } } }),
  deployment({ labels: { app: "web" } }),
];

const policyStep: fc.Arbitrary<Step> = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(...policyObjects).map((one) => ({ change: came(one) })) },
  { weight: 1, arbitrary: fc.constantFrom(...policyObjects).map((one) => ({ change: went(one) })) },
  { weight: 3, arbitrary: fc.constantFrom(...pods).map((one) => ({ request: requestFor(one) })) },
);

const STORED = ["a", "b"].map((name) =>
  deployment({ name, labels: { app: "web" }, metadata: { uid: name, resourceVersion: "5" } }),
);

/** With this many policies one change updates the index in place. */
function others(make: (i: number) => JsonObject): JsonObject[] {
  return Array.from({ length: 12 }, (_, i) => make(i));
}

const otherRules = others((i) => rule(`z${i}`, { nodeNamePatterns: [`z-${i}`], labels: { "x.io/z": "1" } }));
const otherPolicies = others((i) =>
  namespacedPolicy("other", `z${i}`, { podSelector: {}, nodeSelector: { z: "1" } }),
);

interface Subject {
  readonly module: Module;
  /** The same module with empty caches. */
  readonly imported: () => Promise<Module>;
  /** The initial objects of every history. */
  readonly first: readonly Step[];
  readonly step: fc.Arbitrary<Step>;
  readonly options: HistoryOptions;
  readonly emptied: HistoryOptions;
}

const subjects: readonly Subject[] = [
  {
    module: nodeLabels,
    imported: async () => (await import("../src/modules/node-labels/index.ts")).nodeLabels,
    first: otherRules.map((one) => ({ change: arrived(one) })),
    step: nodeStep,
    options: {},
    emptied: {
      assembleAnew: true,
      refresh: (state) => ({ ...(state as object), pending: new PendingNodes() }),
    },
  },
  {
    module: placement,
    imported: async () => (await import("../src/modules/placement/index.ts")).placement,
    first: otherPolicies.map((one) => ({ change: came(one) })),
    step: policyStep,
    options: { workloads: { "deployments.apps": STORED } },
    emptied: { workloads: { "deployments.apps": STORED }, assembleAnew: true },
  },
];

async function resultsOf(module: Module, steps: readonly Step[], options: HistoryOptions) {
  const history = new History(module, options);
  for (const step of steps) await history.step(step);
  return history.results;
}

describe.each(subjects.map((subject) => [subject.module.name, subject] as const))(
  "%s",
  (_name, { module, imported, first: start, step, options, emptied }) => {
    const steps = fc.array(step, { minLength: 5, maxLength: 20 }).map((all) => [...start, ...all]);
    afterAll(() => void vi.resetModules());

    test("two interleaved histories on one instance give the same results as each alone", async () => {
      await fc.assert(
        fc.asyncProperty(steps, steps, async (first, second) => {
          const alone = [await resultsOf(module, first, options), await resultsOf(module, second, options)];
          const histories = [first, second].map((all) => ({ all, history: new History(module, options) }));
          for (let i = 0; i < Math.max(first.length, second.length); i++)
            for (const { all, history } of histories) {
              const next = all[i];
              if (next !== undefined) await history.step(next);
            }
          expect(histories.map(({ history }) => history.results)).toEqual(alone);
        }),
        { numRuns: 30 },
      );
    });

    test("with every cache emptied the results are the same", async () => {
      await fc.assert(
        fc.asyncProperty(steps, async (all) => {
          const warm = await resultsOf(module, all, options);
          vi.resetModules();
          expect(await resultsOf(await imported(), all, emptied)).toEqual(warm);
        }),
        { numRuns: 6 },
      );
    });
  },
);

/** Mutable values at file scope: a `let`, a collection without a read-only type, a static field. */
const FILE_STATE =
  /^(?:export )?(?:(?:let|var) (\w+)|const (\w+)\b(?!: readonly |: Readonly)[^=\n]*= (?:new (?:Weak)?(?:Map|Set|Ref)\b|\[\];|\{\};))|^ +(?:private )?static (?!readonly )(#?\w+)[^(\n]*[=;]/gm;

test("core and modules keep no state at file scope", async () => {
  const files = [...globSync("src/{core,modules}/**/*.ts")].filter((file) => !file.endsWith(".test.ts"));
  expect(files.length).toBeGreaterThan(100);
  const found = files.flatMap((file) =>
    [...readFileSync(file, "utf8").matchAll(FILE_STATE)].map(([, a, b, c]) => `${file} ${a ?? b ?? c}`),
  );
  // State of a module is held by the shell: see Reconciler.
  expect(found).toEqual([]);
});

test.each([
  "let known = 0;",
  "export const memo = new WeakMap<object, string>();",
  "const seen: Map<string, string> = new Map([]);",
  "const found: string[] = [];",
  "  static #last: string | undefined;",
])("%s counts as state at file scope", (line) => {
  expect(line).toMatch(new RegExp(FILE_STATE, "m"));
});
