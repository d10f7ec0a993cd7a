import { describe, expect, test } from "vitest";
import { carried } from "../../../../test/builders/merged.ts";
import { deployment } from "../../../../test/builders/pod.ts";
import { type Fields, wants } from "../../../../test/builders/wants.ts";
import type { Json, JsonObject } from "../../../core/json.ts";
import { steps } from "../../../core/path.ts";
import type { PolicyRef } from "../../../core/policy/policy-ref.ts";
import { PROVENANCE, readProvenance } from "../../../core/provenance/annotation.ts";
import { type Limits, NO_LIMITS } from "../criteria/criterion.ts";
import { ALL_STALE, injectionsIn, stalePart } from "./injections.ts";

const SPEC = ["spec", "template", "spec"];
const AT = "/spec/template/spec";
const NODE = `${AT}/affinity/nodeAffinity`;
const TERMS = `${NODE}/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms`;
const ANTI = `${AT}/affinity/podAntiAffinity`;

const REF = { kind: "ClusterPodSchedulingPolicy", name: "p" };
const policy = (change: Fields, ref: PolicyRef = REF) => ({
  ref,
  criteria: wants(change),
});

interface Entry {
  readonly set?: readonly string[];
  readonly added?: Readonly<Record<string, readonly Json[]>>;
  readonly uid?: string;
  readonly generation?: number;
}

/** A stored Deployment whose annotation has one entry of the policy. */
const stored = (spec: JsonObject, entry: Entry): JsonObject => {
  const text = JSON.stringify({ placement: [{ policy: "ClusterPodSchedulingPolicy/p", ...entry }] });
  return deployment({ spec, annotations: { [PROVENANCE]: text } });
};

/** The paths and elements of a stored object that a policy no longer requires. */
const stale = (object: JsonObject, wanting: ReturnType<typeof policy>) => {
  const parts = injectionsIn(object, readProvenance(object), SPEC).flatMap((injection) => {
    const value = stalePart(injection, wanting);
    return value === undefined ? [] : [injection.criterion.recorded(value, SPEC)];
  });
  return {
    set: parts.flatMap(({ set }) => set),
    added: Object.assign({}, ...parts.map(({ added }) => added)),
  };
};

/** A pod spec with a list at a place. */
const specWith = (place: string, list: Json): JsonObject =>
  steps(place.slice(AT.length)).reduceRight<Json>((inner, step) => ({ [step]: inner }), list) as JsonObject;

const X = { key: "x" };
const Y = { key: "y" };

describe("the part that a policy no longer requires", () => {
  test.each<[string, readonly string[], JsonObject, Fields, readonly string[]]>([
    [
      "a key that is still required",
      [`${AT}/nodeSelector/a`],
      { nodeSelector: { a: "1" } },
      { nodeSelector: [["a", "1"]] },
      [],
    ],
    [
      "a key with another required value",
      [`${AT}/nodeSelector/a`],
      { nodeSelector: { a: "1" } },
      { nodeSelector: [["a", "2"]] },
      [`${AT}/nodeSelector/a`],
    ],
    [
      "a key that is no longer required",
      [`${AT}/nodeSelector/a`],
      { nodeSelector: { a: "1" } },
      {},
      [`${AT}/nodeSelector/a`],
    ],
    [
      "a key with a slash",
      [`${AT}/nodeSelector/x.io~1a`],
      { nodeSelector: { "x.io/a": "1" } },
      { nodeSelector: [["x.io/a", "1"]] },
      [],
    ],
    ["a scheduler", [`${AT}/schedulerName`], { schedulerName: "s" }, { schedulerName: "s" }, []],
    [
      "another scheduler",
      [`${AT}/schedulerName`],
      { schedulerName: "s" },
      { schedulerName: "t" },
      [`${AT}/schedulerName`],
    ],
    ["a class", [`${AT}/priorityClassName`], { priorityClassName: "c" }, { priorityClassName: "c" }, []],
    [
      "no class any more",
      [`${AT}/runtimeClassName`],
      { runtimeClassName: "c" },
      {},
      [`${AT}/runtimeClassName`],
    ],
  ])("%s", (_what, set, spec, change, gone) => {
    expect(stale(stored(spec, { set }), policy(change)).set).toEqual(gone);
  });

  test.each<[string, string, Fields, readonly Json[]]>([
    ["tolerations", `${AT}/tolerations`, { tolerations: [X] }, [Y]],
    ["tolerations, none any more", `${AT}/tolerations`, {}, [X, Y]],
    [
      "preferred node terms",
      `${NODE}/preferredDuringSchedulingIgnoredDuringExecution`,
      { preferredNodeAffinity: [Y] },
      [X],
    ],
    [
      "required anti terms",
      `${ANTI}/requiredDuringSchedulingIgnoredDuringExecution`,
      { requiredPodAntiAffinity: [X, Y] },
      [],
    ],
    [
      "preferred anti terms are others",
      `${ANTI}/preferredDuringSchedulingIgnoredDuringExecution`,
      { requiredPodAntiAffinity: [X, Y] },
      [X, Y],
    ],
    ["gates", `${AT}/schedulingGates`, { schedulingGates: [Y, X] }, []],
    ["constraints", `${AT}/topologySpreadConstraints`, { topologySpreadConstraints: [{ ...X }] }, [Y]],
    ["required node terms, the same in another order", TERMS, { requiredNodeAffinity: [Y, X] }, []],
    ["required node terms, one less: all", TERMS, { requiredNodeAffinity: [X] }, [X, Y]],
    ["required node terms, one more: all", TERMS, { requiredNodeAffinity: [X, Y, { key: "z" }] }, [X, Y]],
  ])("%s", (_what, list, change, gone) => {
    const object = stored(specWith(list, [X, Y]), { added: { [list]: [X, Y] } });
    expect(stale(object, policy(change)).added[list] ?? []).toEqual(gone);
  });
});

test("an injection is not stale as long as the policy is the one that wrote it", () => {
  const object = stored({ schedulerName: "s" }, { set: [`${AT}/schedulerName`], uid: "u", generation: 3 });
  const gone = (ref: PolicyRef) => stale(object, policy({}, ref)).set.length;
  expect(gone({ ...REF, uid: "u", generation: 3 })).toBe(0);
  expect(gone({ ...REF, uid: "u", generation: 4 })).toBe(1);
  expect(gone({ ...REF, uid: "v", generation: 3 })).toBe(1);
  expect(gone(REF)).toBe(1);
});

describe("taking stale injections out", () => {
  const ANTI_TERMS = { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [Y] } };
  const spec = { nodeSelector: { a: "1" }, schedulerName: "s", tolerations: [X], affinity: ANTI_TERMS };
  const object = stored(spec, {
    set: [`${AT}/nodeSelector/a`, `${AT}/schedulerName`],
    added: { [`${AT}/tolerations`]: [X], [`${ANTI}/requiredDuringSchedulingIgnoredDuringExecution`]: [Y] },
  });
  const left = (limits: Limits, from = object) =>
    carried(from, from, { limits, spec: SPEC, stalePart: ALL_STALE }).spec;

  test("removes all of them if all fields may change", () => {
    expect(left(NO_LIMITS)).toEqual({});
  });

  test("leaves fields that can't change", () => {
    const limits = { immutable: { schedulerName: "why", requiredPodAntiAffinity: "why" } };
    expect(left(limits)).toEqual({ schedulerName: "s", affinity: ANTI_TERMS });
  });

  test("leaves all of a pod that can only gain", () => {
    expect(left({ immutable: {}, appendOnly: true })).toEqual(spec);
  });

  test("leaves everything outside the policies' fields, for any annotation", () => {
    const other = { ...spec, containers: [X] };
    const hostile = stored(other, {
      set: ["/spec/replicas", `${AT}/containers`, "/metadata", `${AT}x/nodeSelector/a`, AT],
      added: { "/spec": [X], [`${AT}/containers`]: [X] },
    });
    expect(left(NO_LIMITS, hostile)).toEqual(other);
  });
});
