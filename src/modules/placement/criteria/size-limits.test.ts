import { describe, expect, test } from "vitest";
import { placed, SHOP } from "../../../../test/builders/placed.ts";
import { deployment, pod } from "../../../../test/builders/pod.ts";
import { clusterPolicy } from "../../../../test/builders/policy.ts";
import { requestFor } from "../../../../test/builders/request.ts";
import { type JsonObject, listAt } from "../../../core/json.ts";
import { PROVENANCE } from "../../../core/provenance/annotation.ts";

const REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution";
const policy = (criteria: JsonObject) =>
  clusterPolicy("p", { namespaceSelector: {}, podSelector: {}, ...criteria });
const many = <Item>(count: number, make: (i: number) => Item): Item[] =>
  Array.from({ length: count }, (_, i) => make(i));
const bears = (i: number) => ({ key: `taint-${i}`, operator: "Exists" });
const zone = (...values: string[]) => ({ matchExpressions: [{ key: "zone", operator: "In", values }] });
const terms = (list: readonly JsonObject[]) => ({
  affinity: { nodeAffinity: { [REQUIRED]: { nodeSelectorTerms: list } } },
});

describe("an object larger than any workload is admitted without the policy, with a warning", () => {
  test.each<[string, JsonObject, JsonObject]>([
    ["a list that is full", { tolerations: [bears(-1)] }, { tolerations: many(512, bears) }],
    ["a list too long to look at", { tolerations: [bears(3)] }, { tolerations: many(1_025, bears) }],
    ["terms that lead nowhere", terms([zone("x")]), terms(many(9_000, (i) => zone(`z${i}`)))],
    ["one requirement of many values", terms([zone("x")]), terms([zone(...many(9_000, (i) => `z${i}`))])],
    [
      "more to try than it is worth",
      terms(many(64, (i) => zone(`x${i}`))),
      terms(many(2_000, (i) => zone(`z${i}`))),
    ],
  ])("%s", (_what, criteria, spec) => {
    const { answer, object } = placed([SHOP, policy(criteria)], pod({ spec }));
    expect(answer).toMatchObject({ allowed: true, patch: [] });
    expect(answer.warnings).toEqual([expect.stringContaining("USHER-P12")]);
    expect(object["spec"]).toEqual(spec);
    const closed = policy({ ...criteria, failurePolicy: "Fail" });
    expect(placed([SHOP, closed], pod({ spec })).answer.allowed).toBe(false);
  });

  test("a full list keeps the policy's elements, with the API server's additions to each pod", () => {
    const spec = { tolerations: [...many(512, bears), bears(-1), bears(-2)] };
    const { answer } = placed(
      [SHOP, policy({ tolerations: [bears(511)], failurePolicy: "Fail" })],
      pod({ spec }),
    );
    expect(answer).toMatchObject({ allowed: true, patch: [], warnings: [] });
  });

  test("a list grows to 512 elements and no more", () => {
    const known = many(9, (p) =>
      clusterPolicy(`p${p}`, {
        namespaceSelector: {},
        podSelector: {},
        tolerations: many(64, (i) => bears(p * 64 + i)),
      }),
    );
    const { object, answer } = placed([SHOP, ...known], pod());
    expect(listAt(object, "spec", "tolerations")).toHaveLength(512);
    expect(answer.warnings).toEqual([expect.stringContaining("toleration of policy p8 skipped")]);
  });
});

test.each([
  ["as many elements as usher reads: the stored list is restored", 1_024, 1_024],
  ["more elements than usher reads: none is restored", 1_025, 0],
])("a forged annotation, of a list with %s", (_what, count, restored) => {
  const tolerations = many(count, bears);
  const list = "/spec/template/spec/tolerations";
  const note = { placement: [{ policy: "ClusterPodSchedulingPolicy/p", added: { [list]: tolerations } }] };
  const old = deployment({
    spec: { tolerations },
    metadata: { annotations: { [PROVENANCE]: JSON.stringify(note) } },
  });
  const { object } = placed([SHOP], requestFor(deployment(), { operation: "UPDATE", oldObject: old }));
  expect(listAt(object, "spec", "template", "spec", "tolerations")).toEqual(tolerations.slice(0, restored));
});

test.each<[string, JsonObject]>([
  ["4,096 values", terms([zone(...many(4_096, (i) => `zone-${i}`))])],
  [
    "256 requirements",
    terms([{ matchExpressions: many(256, (i) => ({ key: `key-${i}`, operator: "Exists" })) }]),
  ],
  ["128 terms", terms(many(128, (i) => zone(`zone-${i}`)))],
  ["1,024 labels", { nodeSelector: Object.fromEntries(many(1_024, (i) => [`key-${i}`, "x"])) }],
  ["512 tolerations", { tolerations: many(512, bears) }],
])("%s, as many as a policy may have, are written once, and met", (_what, criteria) => {
  const known = [SHOP, policy({ ...criteria, enforcement: "Refuse" })];
  const { answer, object } = placed(known, pod());
  expect(answer.warnings).toEqual([]);
  expect(answer.patch).not.toEqual([]);
  expect(placed(known, object).answer).toMatchObject({ patch: [], warnings: [] });
  expect(placed(known, object, { phase: "validate" }).answer.allowed).toBe(true);
});
