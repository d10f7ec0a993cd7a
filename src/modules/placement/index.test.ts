import fc from "fast-check";
import { applyPatch, type Operation } from "rfc6902";
import { describe, expect, test } from "vitest";
import { assemblyOf, atOnce, callOf } from "../../../test/builders/evaluation.ts";
import { again } from "../../../test/builders/json.ts";
import { outside } from "../../../test/builders/outside.ts";
import { placed, SHOP } from "../../../test/builders/placed.ts";
import { deployment, matchesPodPlacement, pod, workload } from "../../../test/builders/pod.ts";
import { came, clusterPolicy, namespace, namespacedPolicy, went } from "../../../test/builders/policy.ts";
import { requestFor } from "../../../test/builders/request.ts";
import { evaluate } from "../../core/evaluate/evaluate.ts";
import { responseOf, reviewOf } from "../../core/evaluate/response.ts";
import { at, type Json, type JsonObject } from "../../core/json.ts";
import type { Assembly } from "../../core/module/assembly.ts";
import { policyKey } from "../../core/policy/policy-ref.ts";
import { placement } from "./index.ts";

const KEYS = ["zone", "disk", "arch"];
const VALUES = ["a", "b", ""];
const LABELS = ["app", "tier"];

const labelMap = fc.dictionary(fc.constantFrom(...LABELS), fc.constantFrom(...VALUES), { maxKeys: 2 });
const expression = fc.oneof(
  fc.record({
    key: fc.constantFrom(...LABELS),
    operator: fc.constantFrom("In", "NotIn"),
    values: fc.array(fc.constantFrom(...VALUES), { minLength: 1, maxLength: 2 }),
  }),
  // Within a selector, the last of these can't be read.
  fc.record({
    key: fc.constantFrom(...LABELS),
    operator: fc.constantFrom("Exists", "DoesNotExist", "Exist"),
  }),
);
const selector: fc.Arbitrary<Json | undefined> = fc.oneof(
  { weight: 3, arbitrary: fc.constant({}) },
  { weight: 1, arbitrary: fc.constantFrom(undefined, null, "nonsense") },
  { weight: 4, arbitrary: labelMap.map((matchLabels) => ({ matchLabels })) },
  {
    weight: 2,
    arbitrary: fc
      .array(expression, { minLength: 1, maxLength: 2 })
      .map((matchExpressions) => ({ matchExpressions })),
  },
);
const nodeSelector = fc.dictionary(fc.constantFrom(...KEYS), fc.constantFrom(...VALUES), {
  minKeys: 1,
  maxKeys: 3,
});
const spec = fc.record({
  podSelector: selector,
  namespaceSelector: selector,
  nodeSelector,
  priority: fc.constantFrom(undefined, -1, 1),
  failurePolicy: fc.constantFrom("Ignore", "Ignore", "Ignore", "Fail"),
  targets: fc.constantFrom(undefined, "Both", "Pods", "Templates"),
  onUpdate: fc.constantFrom(undefined, "Inject"),
});

/** Policies of both kinds with different names, some of them inert or broken. */
function policiesOf(count: { readonly min: number; readonly max: number }): fc.Arbitrary<JsonObject[]> {
  const one = fc.record({ spec, where: fc.constantFrom("", "shop", "other") });
  return fc.array(one, { minLength: count.min, maxLength: count.max }).map((list) =>
    list.map((made, i) => {
      const { namespaceSelector, ...rest } = again(made.spec as unknown as JsonObject);
      return made.where === ""
        ? clusterPolicy(`p${i}`, namespaceSelector === undefined ? rest : { ...rest, namespaceSelector })
        : namespacedPolicy(made.where, `p${i}`, rest);
    }),
  );
}
const policies = policiesOf({ min: 0, max: 8 });

const podSpec = fc
  .record({
    own: fc.option(fc.dictionary(fc.constantFrom(...KEYS), fc.constantFrom(...VALUES), { maxKeys: 2 }), {
      nil: undefined,
    }),
    required: fc.option(
      fc.array(
        fc.record({ key: fc.constantFrom(...KEYS), operator: fc.constant("In"), values: fc.constant(["a"]) }),
        { maxLength: 2 },
      ),
      { nil: undefined },
    ),
  })
  .map(({ own, required }): JsonObject => {
    const terms = { nodeSelectorTerms: [{ matchExpressions: required ?? [] }] };
    return {
      containers: [{ name: "c", invented: { x: [null, 1] } }],
      ...(own === undefined ? {} : { nodeSelector: own }),
      ...(required === undefined
        ? {}
        : { affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: terms } } }),
    };
  });
const sent: fc.Arbitrary<JsonObject> = fc
  .record({ labels: labelMap, spec: podSpec, kind: fc.constantFrom("Pod", "Deployment", "CronJob") })
  .map(({ kind, ...parts }) => {
    if (kind === "Pod") return pod(parts);
    return kind === "CronJob" ? workload("batch/v1", kind, parts) : deployment(parts);
  });

const here = labelMap.map((labels) => namespace("shop", labels));

/** The complete result of one request, as text. */
const leaves = (assembly: Assembly, object: JsonObject): string => {
  const evaluation = atOnce(evaluate(callOf(assembly, requestFor(again(object))), outside()));
  return JSON.stringify([reviewOf(responseOf(evaluation)), evaluation.draft.object, evaluation.findings]);
};

describe("for any policies and any object", () => {
  test("the order of the policies does not matter, to the byte", () => {
    const shuffled = policies.chain((list) =>
      fc.tuple(fc.constant(list), fc.shuffledSubarray(list, { minLength: list.length })),
    );
    fc.assert(
      fc.property(here, shuffled, sent, (where, [list, other], object) => {
        const first = leaves(assemblyOf([placement], [where, ...list].map(came)), object);
        expect(leaves(assemblyOf([placement], [...other, where].map(came)), object)).toBe(first);
      }),
      { numRuns: 150 },
    );
  });

  test("the patch gives the evaluated object, and applying it again gives no patch", () => {
    fc.assert(
      fc.property(here, policies, sent, (where, list, object) => {
        const first = placed([where, ...list], object);
        const patched = again(object);
        const operations = again(first.answer.patch as unknown as Json) as unknown as Operation[];
        for (const error of applyPatch(patched, operations)) expect(error).toBeNull();
        if (!first.answer.allowed) return;
        expect(patched).toEqual(first.object);
        expect(placed([where, ...list], patched).answer.patch).toEqual([]);
      }),
      { numRuns: 150 },
    );
  });

  test("no further node is allowed", () => {
    const nodes = KEYS.flatMap((key) => VALUES.map((value) => ({ [key]: value })));
    const all = nodes.flatMap((a) => nodes.map((b) => ({ name: "n", labels: { ...a, ...b } as JsonObject })));
    fc.assert(
      fc.property(here, policies, podSpec, labelMap, (where, list, before, labels) => {
        const { object } = placed([where, ...list], pod({ labels, spec: before }));
        for (const node of all) {
          if (matchesPodPlacement(object["spec"], node)) expect(matchesPodPlacement(before, node)).toBe(true);
        }
      }),
      { numRuns: 150 },
    );
  });

  test("a trace does not change the decision, and lists the applied policies as such", async () => {
    const unknown = fc.option(here, { nil: undefined });
    await fc.assert(
      fc.asyncProperty(unknown, policies, sent, async (where, list, object) => {
        const known = [...(where === undefined ? [] : [where]), ...list];
        const assembly = assemblyOf([placement], known.map(came));
        const world = outside({ expired: () => true });
        const decide = (trace: boolean) =>
          evaluate(callOf(assembly, requestFor(again(object)), { trace }), world);
        const unchanged = await decide(false);
        const reported = await decide(true);
        expect(reported.findings).toEqual(unchanged.findings);
        expect(responseOf(reported)).toEqual(responseOf(unchanged));
        expect(unchanged.trace).toEqual([]);
        expect(reported.trace).toHaveLength(list.length);
        const applies = reported.trace.filter((entry) => entry.applies === "applies");
        const found = reported.findings.filter(({ outcome }) =>
          ["applied", "same", "skipped"].includes(outcome),
        );
        const names = new Set(found.map(({ policy }) => (policy === undefined ? "" : policyKey(policy))));
        // A refusal comes before anything is applied.
        if (reported.denials.length > 0) expect(names.size).toBe(0);
        else expect([...names].sort()).toEqual(applies.map(({ policy }) => policyKey(policy)).sort());
      }),
      { numRuns: 150 },
    );
  });

  test("an index that was changed in place, or supposed, decides like a new one", () => {
    const plan = policiesOf({ min: 24, max: 30 }).chain((list) =>
      fc.tuple(
        fc.constant(list),
        fc.array(fc.tuple(fc.nat(list.length - 1), fc.option(spec, { nil: undefined })), { maxLength: 6 }),
      ),
    );
    fc.assert(
      fc.property(here, plan, sent, sent, (where, [list, moves], one, another) => {
        const current = new Map(list.map((policy) => [JSON.stringify(came(policy).name), policy]));
        const changing = assemblyOf([placement], [where, ...list].map(came));
        const untouched = assemblyOf([placement], [where, ...list].map(came));
        const before = leaves(untouched, one);
        const changes = moves.map(([pick, next]) => {
          const policy = list[pick] ?? where;
          if (next === undefined) {
            current.delete(JSON.stringify(came(policy).name));
            return went(policy);
          }
          const changed = { ...policy, spec: again(next as unknown as JsonObject) };
          current.set(JSON.stringify(came(policy).name), changed);
          return came(changed);
        });
        // One by one, so that each is a change in place; all at once for a supposition.
        for (const change of changes) changing.apply([change]);
        const supposed = untouched.with(changes);
        const anew = assemblyOf([placement], [where, ...current.values()].map(came));
        for (const object of [one, another]) {
          expect(leaves(changing, object)).toBe(leaves(anew, object));
          expect(leaves(supposed, object)).toBe(leaves(anew, object));
        }
        expect(leaves(untouched, one)).toBe(before);
        // And vice versa: changes of the real one do not affect the supposed one.
        const then = leaves(supposed, another);
        untouched.apply([...list.map(went), came(namespace("shop", { app: "changed" }))]);
        expect(leaves(supposed, another)).toBe(then);
      }),
      { numRuns: 60 },
    );
  });

  test("several changes of one policy in one step", () => {
    const list = Array.from({ length: 30 }, (_, i) =>
      clusterPolicy(`p${i}`, {
        namespaceSelector: {},
        podSelector: { matchLabels: { app: `a${i}` } },
        nodeSelector: { zone: "a" },
      }),
    );
    const renamed = (zone: string, app: string) =>
      clusterPolicy("p3", {
        namespaceSelector: {},
        podSelector: { matchLabels: { app } },
        nodeSelector: { zone },
      });
    const assembly = assemblyOf([placement], [SHOP, ...list].map(came));
    assembly.apply([came(renamed("b", "first")), came(renamed("c", "second"))]);
    const selects = (app: string) => {
      const request = requestFor(pod({ labels: { app }, spec: {} }));
      return at(atOnce(evaluate(callOf(assembly, request), outside())).draft.object, "spec", "nodeSelector");
    };
    expect(selects("a3")).toBeUndefined();
    expect(selects("first")).toBeUndefined();
    expect(selects("second")).toEqual({ zone: "c" });
  });
});

test("unknown fields survive byte for byte", () => {
  const unknown = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-0","namespace":"shop","x~/y":{"b":1,"a":2}},"spec":{"initContainers":[{"name":"s","restartPolicy":"Always"}],"schedulingGates":[{"name":"g"}],"invented":{"z":[{}],"a":null},"containers":[]},"extra":[0.1,1e3,""]}`;
  const policy = clusterPolicy("p", { namespaceSelector: {}, podSelector: {}, nodeSelector: { zone: "a" } });
  const object: JsonObject = JSON.parse(unknown);
  const { draft } = atOnce(
    evaluate(callOf(assemblyOf([placement], [SHOP, policy].map(came)), requestFor(object)), outside()),
  );
  expect(at(draft.object, "spec", "nodeSelector")).toEqual({ zone: "a" });
  draft.undo(0);
  expect(JSON.stringify(draft.object)).toBe(JSON.stringify(JSON.parse(unknown)));
});
