import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { anyCriteria, anySpec } from "../../../../test/builders/criteria.ts";
import { carried, merged, placementRequest, requiring, term } from "../../../../test/builders/merged.ts";
import { deployment, pod } from "../../../../test/builders/pod.ts";
import { canonical, type Json, type JsonObject } from "../../../core/json.ts";
import { PROVENANCE, provenanceOf, readProvenance } from "../../../core/provenance/annotation.ts";
import { injectionsIn } from "./injections.ts";

const SPEC = ["spec"];
const TERMS = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";

const noted = (spec: JsonObject, ...entries: Json[]): JsonObject =>
  pod({ spec, annotations: { [PROVENANCE]: JSON.stringify({ placement: entries }) } });

/** The injections of an object by field, each with its policy and value. */
const injections = (object: JsonObject) =>
  injectionsIn(object, readProvenance(object), SPEC).map(({ ref, criterion, value }) => ({
    policy: ref.name,
    name: criterion.name,
    value,
  }));

describe("the injections that the stored object's annotation names", () => {
  test("are read with their policy and generation, in the order of the criteria", () => {
    const ref = { kind: "PodSchedulingPolicy", namespace: "shop", name: "p", uid: "u", generation: 3 };
    const criteria = {
      nodeSelector: [["zone", "a"]] as const,
      schedulerName: "mine",
      tolerations: [{ key: "a" }],
      requiredNodeAffinity: [term("cpu")],
      schedulingGates: [{ name: "g" }],
    };
    const { object } = merged(pod({ spec: requiring(term("own")) }), [placementRequest(criteria, { ref })]);
    const read = injectionsIn(object, readProvenance(object), SPEC);
    expect(Object.fromEntries(read.map(({ criterion, value }) => [criterion.name, value]))).toEqual(criteria);
    expect(read.map(({ ref: found }) => found)).toEqual(Object.keys(criteria).map(() => ref));
    expect(read[0]?.criterion.name).toBe("nodeSelector");
  });

  test("count as far as its spec has them", () => {
    const entry = {
      policy: "K/p",
      set: ["/spec/nodeSelector/zone", "/spec/nodeSelector/gone", "/spec/schedulerName", "/spec/nodeName"],
      added: {
        "/spec/tolerations": [{ key: "a" }, { key: "gone" }, "hostile"],
        [TERMS]: [term("cpu"), term("gone"), 7],
        "/spec/containers": [{ name: "c" }],
      },
    };
    const spec = {
      nodeSelector: { zone: "a" },
      schedulerName: 17,
      nodeName: "",
      tolerations: [{ key: "a" }],
      containers: [{ name: "c" }],
      ...requiring(term("own", "cpu")),
    };
    expect(injections(noted(spec, entry))).toEqual([
      { policy: "p", name: "nodeSelector", value: [["zone", "a"]] },
      { policy: "p", name: "requiredNodeAffinity", value: [term("cpu"), term("gone")] },
      { policy: "p", name: "tolerations", value: [{ key: "a" }] },
    ]);
  });

  test.each<[string, Json]>([
    ["another spec", { policy: "K/p", set: ["/spec/template/spec/nodeSelector/zone"] }],
    ["the whole nodeSelector", { policy: "K/p", set: ["/spec/nodeSelector"] }],
    ["something deeper", { policy: "K/p", set: ["/spec/nodeSelector/zone/x"] }],
    ["__proto__", { policy: "K/p", set: ["/spec/nodeSelector/__proto__"] }],
    ["nothing", { policy: "K/p" }],
  ])("do not include %s", (_what, entry) => {
    expect(injections(noted({ nodeSelector: { zone: "a" } }, entry))).toEqual([]);
  });

  test("do not include those of another module", () => {
    const other = pod({
      spec: { nodeSelector: { zone: "a" } },
      annotations: {
        [PROVENANCE]: JSON.stringify({ other: [{ policy: "K/p", set: ["/spec/nodeSelector/zone"] }] }),
      },
    });
    expect(injections(other)).toEqual([]);
    expect(injections(pod())).toEqual([]);
  });
});

describe("put back, the object is as it was stored", () => {
  const policies = fc
    .array(anyCriteria, { minLength: 1, maxLength: 3 })
    // Names in another order than the policies.
    .map((list) => list.map((criteria, i) => placementRequest(criteria, { name: `p${9 - i}` })));

  test.each([
    ["a pod", pod, SPEC],
    ["a template", deployment, ["spec", "template", "spec"]],
  ] as const)("after a re-apply of the manifest: %s", (_what, make, spec) => {
    fc.assert(
      fc.property(anySpec, policies, (own, list) => {
        const manifest = make({ spec: own });
        const stored = merged(manifest, list, { spec });
        const back = carried(manifest, stored.object, { spec });
        const numbers = { priority: undefined, preemptionPolicy: undefined };
        expect(canonical({ ...back.spec, ...numbers })).toBe(canonical({ ...stored.spec, ...numbers }));
        expect(provenanceOf(back.object)).toEqual(provenanceOf(stored.object));
      }),
      { numRuns: 200 },
    );
  });

  test("and nothing is done if nothing is lost", () => {
    fc.assert(
      fc.property(anySpec, policies, (own, list) => {
        const stored = merged(pod({ spec: own }), list).object;
        expect(carried(stored, stored).patch).toEqual([]);
      }),
      { numRuns: 100 },
    );
  });

  test("if a part is lost, in the order of the stored lists", () => {
    const list = [
      placementRequest(
        { tolerations: [{ key: "1" }, { key: "2" }], requiredNodeAffinity: [term("x")] },
        { name: "z" },
      ),
      placementRequest(
        { tolerations: [{ key: "3" }], requiredNodeAffinity: [term("y"), term("w")] },
        { name: "a" },
      ),
    ];
    const stored = merged(pod({ spec: { tolerations: [{ key: "0" }] } }), list);
    const now = pod({ spec: { tolerations: [{ key: "0" }, { key: "3" }], ...requiring(term("x")) } });
    const back = carried(now, stored.object);
    expect(JSON.stringify(back.spec)).toBe(JSON.stringify(stored.spec));
  });
});

test("the user's own values are unchanged, and a contradiction is reported", () => {
  const list = [
    placementRequest({
      nodeSelector: [["zone", "a"]],
      requiredNodeAffinity: [term("disk=ssd")],
      tolerations: [{ key: "k", effect: "NoExecute" }],
    }),
  ];
  const stored = merged(pod({ spec: {} }), list).object;
  const mine = {
    nodeSelector: { zone: "b" },
    tolerations: [{ key: "k", effect: "NoExecute", tolerationSeconds: 3 }],
    ...requiring(term("disk=hdd")),
  };
  const { spec, findings } = carried(pod({ spec: mine }), stored);
  expect(spec).toEqual(mine);
  expect(findings).toMatchObject([{ outcome: "skipped", code: "USHER-P11" }]);
  expect(findings[0]?.message).toContain("not restored");
});
