import { describe, expect, test } from "vitest";
import { again } from "../../../../test/builders/json.ts";
import { merged, mergedSpec, placementRequest, requiring, term } from "../../../../test/builders/merged.ts";
import { deployment, pod } from "../../../../test/builders/pod.ts";
import type { Fields } from "../../../../test/builders/wants.ts";
import type { Json, JsonObject } from "../../../core/json.ts";
import type { PlacementRequest } from "./target.ts";

const REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution";

const preference = (key: string, weight = 100) => ({ weight, preference: term(`${key}=x`) });
const podTerm = (app: string, topologyKey = "zone") => ({
  labelSelector: { matchLabels: { app } },
  topologyKey,
});
const weighted = (app: string, weight: number) => ({ weight, podAffinityTerm: podTerm(app) });
const toleration = (key: string) => ({
  key,
  operator: "Equal",
  value: `${key}Value`,
  effect: "PreferNoSchedule",
});
const spread = (topologyKey: string, further: JsonObject = {}) => ({
  maxSkew: 1,
  topologyKey,
  whenUnsatisfiable: "DoNotSchedule",
  ...further,
});

/** One list each: what a policy wants, what it is as a pod's spec, an old value, and both merged. */
const LISTS: [string, Fields, (list: Json[]) => JsonObject, wanted: JsonObject, other: JsonObject][] = [
  [
    "preferred node affinity",
    { preferredNodeAffinity: [preference("new")] },
    (list) => ({ affinity: { nodeAffinity: { [PREFERRED]: list } } }),
    preference("new"),
    preference("old"),
  ],
  [
    "required pod affinity",
    { requiredPodAffinity: [podTerm("new")] },
    (list) => ({ affinity: { podAffinity: { [REQUIRED]: list } } }),
    podTerm("new"),
    podTerm("old"),
  ],
  [
    "preferred pod affinity",
    { preferredPodAffinity: [weighted("new", 100)] },
    (list) => ({ affinity: { podAffinity: { [PREFERRED]: list } } }),
    weighted("new", 100),
    weighted("old", 10),
  ],
  [
    "required pod anti-affinity",
    { requiredPodAntiAffinity: [podTerm("new")] },
    (list) => ({ affinity: { podAntiAffinity: { [REQUIRED]: list } } }),
    podTerm("new"),
    podTerm("old"),
  ],
  [
    "preferred pod anti-affinity",
    { preferredPodAntiAffinity: [weighted("new", 100)] },
    (list) => ({ affinity: { podAntiAffinity: { [PREFERRED]: list } } }),
    weighted("new", 100),
    weighted("old", 10),
  ],
  [
    "tolerations",
    { tolerations: [toleration("new")] },
    (list) => ({ tolerations: list }),
    toleration("new"),
    toleration("old"),
  ],
  [
    "topology spread",
    { topologySpreadConstraints: [spread("zone")] },
    (list) => ({ topologySpreadConstraints: list }),
    spread("zone"),
    spread("host"),
  ],
  [
    "scheduling gates",
    { schedulingGates: [{ name: "new" }] },
    (list) => ({ schedulingGates: list }),
    { name: "new" },
    { name: "old" },
  ],
];

/** The rows of the original's common table that a request can have. */
describe.each(LISTS)("%s", (_what, criteria, spec, wanted, other) => {
  test.each<[string, Fields, before: JsonObject, after: JsonObject]>([
    ["nothing wanted, nothing there", {}, {}, {}],
    ["nothing wanted", {}, spec([wanted]), spec([wanted])],
    ["the same is there", criteria, spec([wanted]), spec([wanted])],
    ["nothing there", criteria, {}, spec([wanted])],
    ["an empty list", criteria, spec([]), spec([wanted])],
    ["another is there: that comes first", criteria, spec([other]), spec([other, wanted])],
    ["both are there, the other way round", criteria, spec([wanted, other]), spec([wanted, other])],
  ])("%s", (_row, asked, before, after) => {
    const first = mergedSpec({ containers: [], ...before }, [placementRequest(asked)]);
    expect(first.spec).toEqual({ containers: [], ...after });
    expect(merged(first.object, [placementRequest(asked)]).patch).toEqual([]);
  });

  test("what is no list is left alone, and told", () => {
    const { findings, patch } = mergedSpec(again(spec("hostile" as unknown as Json[])), [
      placementRequest(criteria),
    ]);
    expect(patch).toEqual([]);
    expect(findings).toMatchObject([{ outcome: "failed", warn: 80 }]);
  });

  test("where the API server takes it no more it is skipped, and told; restored it is all the same", () => {
    const immutable = Object.fromEntries(Object.keys(criteria).map((name) => [name, "immutable here"]));
    const limits = { immutable };
    const { patch, findings } = mergedSpec({}, [placementRequest(criteria)], { limits });
    expect(patch).toEqual([]);
    expect(findings).toMatchObject([{ outcome: "skipped", code: "USHER-P13", warn: 60 }]);
    expect(findings[0]?.message).toContain("immutable here");
    expect(mergedSpec({}, [placementRequest(criteria, { restoring: true })], { limits }).spec).toEqual(
      spec([wanted]),
    );
  });
});

describe("tolerations", () => {
  const KEYED = { key: "pool", value: "etcd", effect: "NoExecute" };
  test.each<[string, wanted: JsonObject, own: JsonObject, added: boolean, outcome: string]>([
    ["no operator and Equal", { ...KEYED, operator: "Equal" }, KEYED, false, "same"],
    ["another effect", { ...KEYED, effect: "NoSchedule" }, KEYED, true, "applied"],
    ["another value", { ...KEYED, value: "web" }, KEYED, true, "applied"],
    ["another time: the pod's stays", { ...KEYED, tolerationSeconds: 5 }, KEYED, false, "skipped"],
    ["no time where the pod has one", KEYED, { ...KEYED, tolerationSeconds: 5 }, false, "skipped"],
    ["every taint of the pod", KEYED, { operator: "Exists" }, true, "applied"],
    ["a key of which the pod bears all values", KEYED, { key: "pool", operator: "Exists" }, true, "applied"],
    [
      "Exists with and without a value",
      { key: "a", operator: "Exists", value: "" },
      { key: "a", operator: "Exists" },
      false,
      "same",
    ],
  ])("%s", (_what, wanted, own, added, outcome) => {
    const { spec, findings } = mergedSpec({ tolerations: [own] }, [
      placementRequest({ tolerations: [wanted] }),
    ]);
    expect(spec["tolerations"]).toEqual(added ? [own, wanted] : [own]);
    expect(findings.map((one) => one.outcome)).toEqual([outcome]);
  });

  test("the message names both sides", () => {
    const wanted = { ...KEYED, tolerationSeconds: 5 };
    const report = (...requests: PlacementRequest[]) => mergedSpec({}, requests).findings.at(-1)?.message;
    expect(
      report(
        placementRequest({ tolerations: [KEYED] }, { name: "a" }),
        placementRequest({ tolerations: [wanted] }),
      ),
    ).toBe(
      "toleration: kept policy a's value pool=etcd:NoExecute; policy p wants pool=etcd:NoExecute for 5s",
    );
  });
});

describe("topology spread", () => {
  test("the same pair in other words: the pod's stays", () => {
    const own = [spread("zone", { maxSkew: 2 })];
    const asked = placementRequest({
      topologySpreadConstraints: [spread("zone"), spread("zone", { whenUnsatisfiable: "ScheduleAnyway" })],
    });
    const { spec, findings } = mergedSpec({ topologySpreadConstraints: own }, [asked]);
    expect(spec["topologySpreadConstraints"]).toEqual([
      ...own,
      spread("zone", { whenUnsatisfiable: "ScheduleAnyway" }),
    ]);
    expect(findings.map(({ outcome, code }) => [outcome, code])).toEqual([
      ["applied", undefined],
      ["skipped", "USHER-P14"],
    ]);
  });
});

describe.each(["nodeName", "runtimeClassName", "priorityClassName", "schedulerName"] as const)(
  "%s",
  (field) => {
    test.each<[string, before: Json | undefined, after: string]>([
      ["absent", undefined, "new"],
      ["null", null, "new"],
      ["empty", "", "new"],
      ["the same", "new", "new"],
      ["another: the pod's stays", "old", "old"],
    ])("%s", (_what, before, after) => {
      const own = before === undefined ? {} : { [field]: before };
      for (const make of [pod, deployment]) {
        const spec = make === pod ? ["spec"] : ["spec", "template", "spec"];
        const first = merged(
          make({ spec: { containers: [], ...own } }),
          [placementRequest({ [field]: "new" })],
          {
            spec,
          },
        );
        expect(first.spec).toEqual({ containers: [], [field]: after });
        expect(merged(first.object, [placementRequest({ [field]: "new" })], { spec }).patch).toEqual([]);
      }
    });

    test("the conflict names who was first", () => {
      const { findings, spec } = mergedSpec({}, [
        placementRequest({ [field]: "one" }, { name: "a" }),
        placementRequest({ [field]: "two" }),
      ]);
      expect(spec[field]).toBe("one");
      expect(findings.at(-1)).toMatchObject({
        outcome: "skipped",
        code: "USHER-P10",
        message: `${field}: kept policy a's value one; policy p wants two`,
        warn: 60,
      });
    });

    test("is put back, but not over what the user says", () => {
      const back = placementRequest({ [field]: "new" }, { restoring: true });
      expect(mergedSpec({}, [back]).spec[field]).toBe("new");
      const kept = mergedSpec({ [field]: "mine" }, [back]);
      expect(kept.spec[field]).toBe("mine");
      expect(kept.findings).toEqual([]);
    });

    test("where it can't be written", () => {
      const { findings, patch } = merged({ ...pod(), spec: "x" }, [placementRequest({ [field]: "new" })]);
      expect(patch).toEqual([]);
      expect(findings).toMatchObject([{ outcome: "failed" }]);
      expect(
        mergedSpec({}, [placementRequest({ [field]: "new" })], {
          limits: { immutable: { [field]: "it is late" } },
        }).findings,
      ).toMatchObject([
        { outcome: "skipped", code: "USHER-P13", message: `${field} of policy p skipped: it is late` },
      ]);
    });
  },
);

describe("priorityClassName and the numbers that follow from it", () => {
  const OWN = { priority: 0, preemptionPolicy: "PreemptLowerPriority" };

  test("go from a pod, stay in a template, stay with the pod's own class", () => {
    const asked = placementRequest({ priorityClassName: "high" });
    expect(mergedSpec(OWN, [asked]).spec).toEqual({ priorityClassName: "high" });
    expect(mergedSpec(OWN, [asked]).patch).toContainEqual({ op: "remove", path: "/spec/priority" });
    const template = merged(deployment({ spec: OWN }), [asked], { spec: ["spec", "template", "spec"] });
    expect(template.spec).toEqual({ ...OWN, priorityClassName: "high" });
    const own = { ...OWN, priorityClassName: "low" };
    expect(mergedSpec(own, [asked]).spec).toEqual(own);
    expect(
      mergedSpec(OWN, [placementRequest({ priorityClassName: "high" }, { restoring: true })]).spec,
    ).toEqual({
      ...OWN,
      priorityClassName: "high",
    });
  });
});

describe("a node and a gate", () => {
  test.each<[string, JsonObject, PlacementRequest[], JsonObject]>([
    [
      "the pod waits at a gate",
      { schedulingGates: [{ name: "g" }] },
      [placementRequest({ nodeName: "n" })],
      { schedulingGates: [{ name: "g" }] },
    ],
    [
      "the pod has its node",
      { nodeName: "n" },
      [placementRequest({ schedulingGates: [{ name: "g" }] })],
      { nodeName: "n" },
    ],
    [
      "one policy wants both",
      {},
      [placementRequest({ nodeName: "n", schedulingGates: [{ name: "g" }] })],
      { schedulingGates: [{ name: "g" }] },
    ],
    [
      "the first policy wants the node",
      {},
      [
        placementRequest({ nodeName: "n" }, { name: "a" }),
        placementRequest({ schedulingGates: [{ name: "g" }] }),
      ],
      { nodeName: "n" },
    ],
  ])("%s", (_what, own, requests, expected) => {
    const { spec, findings, object } = mergedSpec(own, requests);
    expect(spec).toEqual(expected);
    expect(findings.at(-1)).toMatchObject({ outcome: "skipped", code: "USHER-P15", warn: 60 });
    expect(merged(object, requests).patch).toEqual([]);
  });

  test("a node beside affinity in one policy", () => {
    const { spec } = mergedSpec({}, [
      placementRequest({ nodeName: "n", requiredNodeAffinity: [term("zone=a")] }),
    ]);
    expect(spec).toEqual({ nodeName: "n", ...requiring(term("zone=a")) });
  });
});

describe("a policy that refuses", () => {
  test.each<[string, own: JsonObject, Fields, code: string]>([
    [
      "a nodeSelector key",
      { nodeSelector: { zone: "b" } },
      {
        nodeSelector: [
          ["disk", "ssd"],
          ["zone", "a"],
        ],
      },
      "USHER-P01",
    ],
    ["a name", { schedulerName: "mine" }, { schedulerName: "theirs" }, "USHER-P10"],
    ["a contradiction", requiring(term("zone=b")), { requiredNodeAffinity: [term("zone=a")] }, "USHER-P11"],
    [
      "a nodeSelector key against the affinity",
      requiring(term("zone=b")),
      { nodeSelector: [["zone", "a"]] },
      "USHER-P11",
    ],
    [
      "a toleration for another time",
      { tolerations: [{ key: "a", effect: "NoExecute" }] },
      { tolerations: [{ key: "b" }, { key: "a", effect: "NoExecute", tolerationSeconds: 1 }] },
      "USHER-P14",
    ],
  ])("%s", (_what, own, criteria, code) => {
    const refusing = mergedSpec(own, [placementRequest(criteria, { onConflict: "Refuse" })]);
    expect(refusing.patch).toEqual([]);
    expect(refusing.findings).toMatchObject([{ outcome: "violated", code }]);
    expect(refusing.findings[0]?.warn).toBeUndefined();
    const skipping = mergedSpec(own, [placementRequest(criteria)]);
    expect(skipping.findings.at(-1)).toMatchObject({ outcome: "skipped", code, warn: 60 });
    // Nothing is refused for what is only put back.
    const back = mergedSpec(own, [placementRequest(criteria, { onConflict: "Refuse", restoring: true })]);
    expect(back.findings.some(({ outcome }) => outcome === "violated")).toBe(false);
  });

  test("writes its other fields", () => {
    const asked = placementRequest(
      { schedulerName: "x", nodeSelector: [["zone", "a"]] },
      { onConflict: "Refuse" },
    );
    expect(mergedSpec({ schedulerName: "mine" }, [asked]).spec).toEqual({
      schedulerName: "mine",
      nodeSelector: { zone: "a" },
    });
  });
});

test("what we do not know survives, byte for byte", () => {
  const own = {
    initContainers: [{ name: "sidecar", restartPolicy: "Always", invented: [null, { x: 1 }] }],
    schedulingGates: [{ name: "wait", since: 3 }],
    affinity: {
      invented: { deep: [1] },
      nodeAffinity: {
        newer: true,
        [REQUIRED]: { nodeSelectorTerms: [{ ...term("zone=a"), future: { y: [] } }], sibling: 1 },
        [PREFERRED]: [{ ...preference("old"), newer: "z" }],
      },
    },
    tolerations: [{ key: "k", operator: "Exists", future: 1 }],
  };
  const { spec } = mergedSpec(own, [
    placementRequest({
      requiredNodeAffinity: [term("disk=ssd")],
      preferredNodeAffinity: [preference("new")],
      tolerations: [toleration("new")],
      nodeSelector: [["a", "b"]],
    }),
  ]);
  expect(JSON.stringify(spec)).toBe(
    JSON.stringify({
      ...own,
      affinity: {
        ...own.affinity,
        nodeAffinity: {
          newer: true,
          [REQUIRED]: {
            nodeSelectorTerms: [{ ...term("zone=a", "disk=ssd"), future: { y: [] } }],
            sibling: 1,
          },
          [PREFERRED]: [{ ...preference("old"), newer: "z" }, preference("new")],
        },
      },
      tolerations: [...own.tolerations, toleration("new")],
      nodeSelector: { a: "b" },
    }),
  );
});

test("a policy with the same name in a namespace is another one", () => {
  const shop = { ref: { kind: "PodSchedulingPolicy", namespace: "shop", name: "p" } };
  const { findings } = mergedSpec({}, [
    placementRequest({ schedulerName: "x" }),
    placementRequest({ schedulerName: "y" }, shop),
  ]);
  expect(findings.at(-1)?.message).toBe("schedulerName: kept policy p's value x; policy shop/p wants y");
});
