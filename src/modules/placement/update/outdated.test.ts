import { describe, expect, test } from "vitest";
import { type Fields, wants } from "../../../../test/builders/wants.ts";
import type { PolicyRef } from "../../../core/evaluate/finding.ts";
import type { Json, JsonObject } from "../../../core/json.ts";
import type { Origin } from "../../../core/provenance/origin.ts";
import { NO_LIMITS } from "../criteria/criterion.ts";
import { outdated, removable } from "./outdated.ts";

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

const origin = (set: readonly string[], added: Record<string, readonly Json[]> = {}): Origin => ({
  module: "placement",
  policy: "ClusterPodSchedulingPolicy/p",
  set,
  added,
});

const stored = (spec: JsonObject): JsonObject => ({ spec: { template: { spec } } });

const X = { key: "x" };
const Y = { key: "y" };

describe("what a policy no longer wants", () => {
  test.each<[string, readonly string[], JsonObject, Fields, readonly string[]]>([
    [
      "a key that it still wants so",
      [`${AT}/nodeSelector/a`],
      { nodeSelector: { a: "1" } },
      { nodeSelector: [["a", "1"]] },
      [],
    ],
    [
      "a key that it wants otherwise",
      [`${AT}/nodeSelector/a`],
      { nodeSelector: { a: "1" } },
      { nodeSelector: [["a", "2"]] },
      [`${AT}/nodeSelector/a`],
    ],
    [
      "a key that it wants no more",
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
    expect(outdated(origin(set), policy(change), stored(spec), SPEC).set).toEqual(gone);
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
    const { added } = outdated(origin([], { [list]: [X, Y] }), policy(change), stored({}), SPEC);
    expect(added[list] ?? []).toEqual(gone);
  });
});

test("nothing is outdated as long as the policy is the one that wrote it", () => {
  const wrote = { ...origin([`${AT}/schedulerName`]), uid: "u", generation: 3 };
  const gone = (ref: PolicyRef) =>
    outdated(wrote, policy({}, ref), stored({ schedulerName: "s" }), SPEC).set.length;
  expect(gone({ ...REF, uid: "u", generation: 3 })).toBe(0);
  expect(gone({ ...REF, uid: "u", generation: 4 })).toBe(1);
  expect(gone({ ...REF, uid: "v", generation: 3 })).toBe(1);
  expect(gone(REF)).toBe(1);
});

describe("what may be removed", () => {
  const both = origin([`${AT}/nodeSelector/a`, `${AT}/schedulerName`], {
    [`${AT}/tolerations`]: [X],
    [`${ANTI}/requiredDuringSchedulingIgnoredDuringExecution`]: [Y],
  });

  test("all, where all may change", () => {
    expect(removable(both, NO_LIMITS, SPEC)).toEqual(both);
  });

  test("not what can't change", () => {
    const left = removable(
      both,
      { immutable: { schedulerName: "why", requiredPodAntiAffinity: "why" } },
      SPEC,
    );
    expect(left.set).toEqual([`${AT}/nodeSelector/a`]);
    expect(left.added).toEqual({ [`${AT}/tolerations`]: [X] });
  });

  test("nothing of a pod that can only gain", () => {
    expect(removable(both, { immutable: {}, appendOnly: true }, SPEC)).toMatchObject({ set: [], added: {} });
  });

  test("nothing outside the fields that policies have, whatever a note says", () => {
    const hostile = origin(["/spec/replicas", `${AT}/containers`, "/metadata", `${AT}x/nodeSelector/a`, AT], {
      "/spec": [X],
      [`${AT}/containers`]: [X],
    });
    expect(removable(hostile, NO_LIMITS, SPEC)).toMatchObject({ set: [], added: {} });
  });
});
