import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { anyCriteria } from "../../../../test/builders/criteria.ts";
import { carried, merged, placementRequest, requiring, term } from "../../../../test/builders/merged.ts";
import { deployment, pod } from "../../../../test/builders/pod.ts";
import type { Fields } from "../../../../test/builders/wants.ts";
import type { Origin } from "../../../core/decision/draft.ts";
import { canonical, type JsonObject } from "../../../core/json.ts";
import { PROVENANCE, provenanceOf } from "../../../core/provenance/annotation.ts";
import type { PlacementRequest } from "../criteria/context.ts";
import type { StalePart } from "./injections.ts";
import { ALL_STALE } from "./injections.ts";

/** The injections of some policies. */
const staleOf =
  (which: (origin: Origin) => boolean): StalePart =>
  ({ origin, value }) =>
    which(origin) ? value : undefined;

/** A pod's spec after all, or some, of the injections that its annotation names were taken out. */
function without(
  object: JsonObject,
  which: (origin: Origin) => boolean = () => true,
  now = object,
): JsonObject {
  return carried(now, object, { stalePart: staleOf(which) }).spec;
}

const EVERYTHING: Fields = {
  nodeSelector: [["zone", "a"]],
  schedulerName: "mine",
  priorityClassName: "high",
  runtimeClassName: "kata",
  requiredNodeAffinity: [term("disk=ssd"), term("cpu")],
  preferredNodeAffinity: [{ weight: 1, preference: term("x") }],
  requiredPodAffinity: [{ topologyKey: "zone" }],
  preferredPodAntiAffinity: [{ weight: 1, podAffinityTerm: { topologyKey: "zone" } }],
  tolerations: [{ key: "a" }, { key: "b" }],
  topologySpreadConstraints: [{ maxSkew: 1, topologyKey: "zone", whenUnsatisfiable: "DoNotSchedule" }],
  schedulingGates: [{ name: "wait" }],
};

describe("exactly a policy's injections are removed", () => {
  test.each<[string, JsonObject]>([
    ["nothing of its own", { containers: [] }],
    [
      "something beside everywhere",
      {
        nodeSelector: { own: "1" },
        tolerations: [{ key: "own" }],
        affinity: {
          ...(requiring(term("own=1"), term("own=2"))["affinity"] as JsonObject),
          podAffinity: { invented: 1 },
        },
        future: { x: null },
      },
    ],
    ["the same requirement in its only term", requiring(term("disk=ssd", "own"))],
    ["the same term beside another", requiring(term("disk=ssd"), term("own"))],
    ["an empty term", requiring({}, term("own"))],
  ])("of a pod with %s", (_what, own) => {
    const stored = merged(pod({ spec: own }), [placementRequest(EVERYTHING)]).object;
    expect(canonical(without(stored))).toBe(canonical(own));
  });

  test("a requirement that the pod has in each of its terms is the pod's", () => {
    const own = requiring(term("disk=ssd", "own"), term("disk=ssd", "mine"));
    const stored = merged(pod({ spec: own }), [
      placementRequest({ requiredNodeAffinity: [term("disk=ssd", "cpu")] }),
    ]).object;
    expect(without(stored)).toEqual(own);
  });

  test("of a template", () => {
    const path = ["spec", "template", "spec"];
    const sent = deployment({ spec: { containers: [] } });
    const stored = merged(sent, [placementRequest(EVERYTHING)], { spec: path }).object;
    expect(carried(stored, stored, { spec: path, stalePart: ALL_STALE }).object["spec"]).toEqual(
      sent["spec"],
    );
  });

  test("of one policy only: the other's stays", () => {
    const other = placementRequest(
      { requiredNodeAffinity: [term("cpu")], nodeSelector: [["rack", "1"]], tolerations: [{ key: "b" }] },
      { name: "q" },
    );
    const first = placementRequest({
      requiredNodeAffinity: [term("disk=ssd"), term("disk=hdd")],
      nodeSelector: [["zone", "a"]],
      tolerations: [{ key: "a" }],
    });
    const stored = merged(pod({ spec: {} }), [first, other]).object;
    expect(without(stored, ({ policy }) => policy.endsWith("/p"))).toEqual({
      nodeSelector: { rack: "1" },
      tolerations: [{ key: "b" }],
      ...requiring(term("cpu")),
    });
    expect(without(stored, ({ policy }) => policy.endsWith("/q"))).toEqual({
      nodeSelector: { zone: "a" },
      tolerations: [{ key: "a" }],
      ...requiring(term("disk=ssd"), term("disk=hdd")),
    });
  });

  test("two that share a requirement leave nothing together", () => {
    const a = placementRequest({ requiredNodeAffinity: [term("r"), term("q")] }, { name: "a" });
    const b = placementRequest({ requiredNodeAffinity: [term("r", "s")] }, { name: "b" });
    expect(without(merged(pod({ spec: {} }), [a, b]).object)).toEqual({});
  });
});

describe("of several policies", () => {
  const a = placementRequest({ requiredNodeAffinity: [term("zone=a"), term("zone=b")] }, { name: "a" });
  const b = placementRequest({ requiredNodeAffinity: [term("zone=a")] }, { name: "b" });
  const of = (name: string) => (origin: Origin) => origin.policy.endsWith(`/${name}`);

  test("an element that a remaining policy has added as well stays", () => {
    const { object } = merged(pod({ spec: {} }), [a, b]);
    expect(without(object, of("a"))).toEqual(requiring(term("zone=a")));
    expect(without(object)).toEqual({});
  });

  test("others' elements keep their position, and a rewritten one returns to its own", () => {
    const lists = (name: string, ...keys: string[]) =>
      placementRequest({ tolerations: keys.map((key) => ({ key })) }, { name });
    const list = [lists("a", "1", "2"), lists("b", "3")];
    const stored = merged(pod({ spec: { tolerations: [{ key: "0" }] } }), list).object;
    const removed = (which: (origin: Origin) => boolean, wanting: readonly PlacementRequest[]) =>
      carried(stored, stored, { stalePart: staleOf(which), wanting });
    expect(removed(of("a"), list).patch).toEqual([]);
    expect(removed(() => true, list).patch).toEqual([]);
    // Equal elements of other policies keep their position.
    const other = [lists("a", "3"), lists("b", "2", "1")];
    expect(removed(() => true, other).spec["tolerations"]).toEqual(
      ["0", "1", "2", "3"].map((key) => ({ key })),
    );
    expect(removed(() => true, [lists("a", "4"), lists("b", "1")]).spec["tolerations"]).toEqual(
      ["0", "4", "1"].map((key) => ({ key })),
    );
    const turned = removed(of("a"), [lists("a", "2", "1"), lists("b", "3")]);
    expect(turned.spec).toEqual(stored["spec"]);
  });
});

describe("not removed", () => {
  const stored = merged(pod({ spec: {} }), [
    placementRequest({ nodeSelector: [["zone", "a"]], schedulerName: "mine" }),
  ]).object;
  const changed = (spec: JsonObject): JsonObject => ({ ...stored, spec });

  test.each<[string, JsonObject]>([
    ["a value that the user has changed", { nodeSelector: { zone: "b" }, schedulerName: "other" }],
    ["an absent value", { containers: [] }],
    ["a nodeSelector that is a string", { nodeSelector: "zone=a" }],
    ["a nodeSelector that is a list", { nodeSelector: ["zone"] }],
  ])("%s", (_what, spec) => {
    expect(without(stored, undefined, changed(spec))).toEqual(spec);
  });

  test.each<[string, Partial<Origin>]>([
    ["another spec", { set: ["/spec/template/spec/nodeSelector/zone"] }],
    ["the whole nodeSelector", { set: ["/spec/nodeSelector"] }],
    ["something deeper", { set: ["/spec/nodeSelector/zone/x"] }],
    ["other places", { set: ["/spec/containers", "/metadata/name", "/spec"] }],
    ["__proto__", { set: ["/spec/nodeSelector/__proto__"] }],
    ["a list of another type", { added: { "/spec/containers": [{ name: "c" }] } }],
  ])("provenance of %s", (_what, note) => {
    const spec = { nodeSelector: { zone: "a" }, containers: [{ name: "c" }] };
    const annotation = JSON.stringify({ placement: [{ policy: "K/p", ...note }] });
    const object = pod({ spec, annotations: { [PROVENANCE]: annotation } });
    expect(carried(object, object, { stalePart: ALL_STALE }).spec).toEqual(spec);
  });
});

/** The pod's values on keys that no policy uses. */
const ownSpec: fc.Arbitrary<JsonObject> = fc
  .record({
    selector: fc.boolean(),
    terms: fc.uniqueArray(fc.constantFrom("own=1", "own=2", "mine", "!never"), { maxLength: 2 }),
    tolerated: fc.boolean(),
  })
  .map(({ selector, terms, tolerated }) => ({
    containers: [{ name: "c" }],
    ...(selector ? { nodeSelector: { mine: "1" } } : {}),
    ...(terms.length === 0 ? {} : requiring(...terms.map((text) => term(text)))),
    ...(tolerated ? { tolerations: [{ key: "own", operator: "Exists" }] } : {}),
  }));

const requests: fc.Arbitrary<PlacementRequest[]> = fc
  .array(anyCriteria, { minLength: 1, maxLength: 3 })
  .map((list) => list.map((criteria, i) => placementRequest(criteria, { name: `p${i}` })));

describe("for any requests", () => {
  test("removed back, the object is as it was", () => {
    fc.assert(
      fc.property(ownSpec, requests, (spec, list) => {
        const stored = merged(pod({ spec }), list).object;
        expect(canonical(without(stored))).toBe(canonical(spec));
      }),
      { numRuns: 300 },
    );
  });

  test("removing and merging again changes nothing: there is no patch", () => {
    fc.assert(
      fc.property(ownSpec, requests, fc.nat(), (spec, list, pick) => {
        const stored = merged(pod({ spec }), list).object;
        const all = provenanceOf(stored);
        const one = all[pick % Math.max(1, all.length)];
        const again1 = carried(stored, stored, { stalePart: ALL_STALE, wanting: list });
        expect(again1.patch).toEqual([]);
        // Terms of several policies may be reported as applied, one policy after the other.
        const applied = again1.findings.filter(({ outcome }) => outcome === "applied");
        expect(applied.filter(({ rule }) => rule !== "affinity.nodeAffinity.required")).toEqual([]);
        if (list.length === 1) expect(applied).toEqual([]);
        if (one === undefined) return;
        // Also for one policy among those that stay.
        const stalePart = staleOf(({ policy }) => policy === one.policy);
        const again2 = carried(stored, stored, { stalePart, wanting: list });
        // If policies share requirements, their attribution may then differ.
        expect(again2.patch.filter(({ path }) => !path.startsWith("/metadata"))).toEqual([]);
      }),
      { numRuns: 300 },
    );
  });
});

test("only final differences are patched", () => {
  const stored = merged(pod({ spec: {} }), [placementRequest(EVERYTHING)]).object;
  const changed = placementRequest({
    ...EVERYTHING,
    nodeSelector: [["zone", "b"]],
    tolerations: [{ key: "b" }, { key: "c" }],
  });
  const { patch, spec } = carried(stored, stored, { stalePart: ALL_STALE, wanting: [changed] });
  expect(spec["tolerations"]).toEqual([{ key: "b" }, { key: "c" }]);
  expect(patch.map(({ op, path }) => [op, path]).filter(([, path]) => path?.startsWith("/spec"))).toEqual([
    ["replace", "/spec/nodeSelector"],
    ["replace", "/spec/tolerations"],
  ]);
});

test("an object without an annotation is left as it is", () => {
  expect(carried(pod(), pod(), { stalePart: ALL_STALE }).patch).toEqual([]);
});
