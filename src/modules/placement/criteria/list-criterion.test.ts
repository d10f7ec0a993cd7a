import { describe, expect, test } from "vitest";
import { again } from "../../../../test/builders/json.ts";
import { merged, mergedSpec, placementRequest, term } from "../../../../test/builders/merged.ts";
import type { Fields } from "../../../../test/builders/wants.ts";
import type { Json, JsonObject } from "../../../core/json.ts";
import type { PlacementRequest } from "./context.ts";

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

/** One list each: the policy's value, its form in a pod's spec, an old value, and both merged. */
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
    ["nothing required, nothing present", {}, {}, {}],
    ["nothing wanted", {}, spec([wanted]), spec([wanted])],
    ["the same is there", criteria, spec([wanted]), spec([wanted])],
    ["nothing there", criteria, {}, spec([wanted])],
    ["an empty list", criteria, spec([]), spec([wanted])],
    ["another is present: that comes first", criteria, spec([other]), spec([other, wanted])],
    ["both are there, the other way round", criteria, spec([wanted, other]), spec([wanted, other])],
  ])("%s", (_row, asked, before, after) => {
    const first = mergedSpec({ containers: [], ...before }, [placementRequest(asked)]);
    expect(first.spec).toEqual({ containers: [], ...after });
    expect(merged(first.object, [placementRequest(asked)]).patch).toEqual([]);
  });

  test("a value that is not a list is left alone, and reported", () => {
    const { findings, patch } = mergedSpec(again(spec("hostile" as unknown as Json[])), [
      placementRequest(criteria),
    ]);
    expect(patch).toEqual([]);
    expect(findings).toMatchObject([{ outcome: "failed", warn: 80 }]);
  });

  test("if it is immutable it is skipped, and reported; it is still restored", () => {
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
    ["every taint borne by the pod", KEYED, { operator: "Exists" }, false, "same"],
    [
      "a key of which the pod tolerates all values",
      KEYED,
      { key: "pool", operator: "Exists" },
      false,
      "same",
    ],
    [
      "a wider one for a time",
      KEYED,
      { key: "pool", operator: "Exists", tolerationSeconds: 5 },
      true,
      "applied",
    ],
    ["a narrower one", { key: "pool", operator: "Exists" }, KEYED, true, "applied"],
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

  test("a wider one of another policy covers nothing: it may be removed with that policy", () => {
    const wide = { operator: "Exists" };
    const requests = [wide, KEYED].map((one, i) =>
      placementRequest({ tolerations: [one] }, { name: `p${i}` }),
    );
    const { spec, object } = mergedSpec({}, requests);
    expect(spec["tolerations"]).toEqual([wide, KEYED]);
    expect(merged(object, requests).patch).toEqual([]);
  });

  test("an earlier injection is restored beside a wider one", () => {
    const wide = { operator: "Exists" };
    const request = placementRequest({ tolerations: [KEYED] }, { restoring: true });
    expect(mergedSpec({ tolerations: [wide] }, [request]).spec["tolerations"]).toEqual([wide, KEYED]);
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
  test("an equivalent pair in another spelling: the pod's stays", () => {
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
