import fc from "fast-check";
import type { Json, JsonObject } from "../../src/core/json.ts";
import { requiring, term } from "./merged.ts";

/** The cases that every criterion must have. Policy and pod specs are written as users write them. */
export interface CriterionCases {
  /** The policy's value, the pod before, and the pod after. */
  readonly table: readonly (readonly [
    what: string,
    policy: JsonObject,
    before: JsonObject,
    after: JsonObject,
  ])[];
  /** Specs of policies that have this criterion alone, without conflicts among their values. */
  readonly policies: fc.Arbitrary<JsonObject>;
  /** Values that an API server never sends: in a policy each is a problem; in a pod nothing is written. */
  readonly hostile: readonly Json[];
}

const REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution";
const key = fc.constantFrom("zone", "disk", "x.io/rack");
const value = fc.constantFrom("a", "b");

/** A field that holds a name. */
function names(field: string): CriterionCases {
  return {
    table: [
      ["sets an absent field", { [field]: "one" }, {}, { [field]: "one" }],
      ["sets an empty field", { [field]: "one" }, { [field]: "" }, { [field]: "one" }],
      ["keeps another value", { [field]: "one" }, { [field]: "two" }, { [field]: "two" }],
      ["the same", { [field]: "one" }, { [field]: "one" }, { [field]: "one" }],
    ],
    policies: fc.constantFrom("one", "two").map((name) => ({ [field]: name })),
    hostile: [7, ["one"], { name: "one" }, true],
  };
}

/** A list at a path, with two elements that are compatible with each other. */
function lists(path: readonly string[], one: JsonObject, two: JsonObject): CriterionCases {
  const at = (...elements: Json[]) =>
    path.reduceRight<Json>((inner, step) => ({ [step]: inner }), elements) as JsonObject;
  return {
    table: [
      ["adds to an absent list", at(one), {}, at(one)],
      ["appended", at(one), at(two), at(two, one)],
      ["the same", at(one), at(one), at(one)],
      ["adds the missing one of two", at(one, two), at(two), at(two, one)],
    ],
    policies: fc.subarray([one, two], { minLength: 1 }).map((some) => at(...some)),
    hostile: ["text", 7, true, { a: 1 }],
  };
}

const podTerm = (app: string) => ({ labelSelector: { matchLabels: { app } }, topologyKey: "zone" });
const weighted = (app: string) => ({ podAffinityTerm: podTerm(app), weight: 5 });
const preference = (label: string) => ({ preference: term(`${label}=x`), weight: 5 });
const spread = (topologyKey: string) => ({ maxSkew: 1, topologyKey, whenUnsatisfiable: "DoNotSchedule" });

/** By the name of the criterion. */
export const CRITERION_CASES: Readonly<Record<string, CriterionCases>> = {
  nodeSelector: {
    table: [
      ["adds keys that the pod lacks", { nodeSelector: { zone: "a" } }, {}, { nodeSelector: { zone: "a" } }],
      [
        "keeps the pod's value of a key",
        { nodeSelector: { disk: "ssd", zone: "a" } },
        { nodeSelector: { zone: "b" } },
        { nodeSelector: { disk: "ssd", zone: "b" } },
      ],
      [
        "skips a key that no required term allows",
        { nodeSelector: { zone: "a" } },
        requiring(term("zone=b")),
        requiring(term("zone=b")),
      ],
    ],
    policies: fc
      .dictionary(key, value, { minKeys: 1, maxKeys: 3 })
      .map((labels) => ({ nodeSelector: labels })),
    hostile: ["zone=a", ["zone"], 17, true],
  },
  requiredNodeAffinity: {
    table: [
      ["a first term", requiring(term("zone=a")), {}, requiring(term("zone=a"))],
      [
        "combines each term with each",
        requiring(term("x"), term("y")),
        requiring(term("a"), term("b")),
        requiring(term("a", "x"), term("a", "y"), term("b", "x"), term("b", "y")),
      ],
      ["a stronger one", requiring(term("x")), requiring(term("a", "x")), requiring(term("a", "x"))],
      ["a contradiction", requiring(term("zone=a")), requiring(term("zone=b")), requiring(term("zone=b"))],
    ],
    policies: fc
      .uniqueArray(fc.constantFrom("zone=a", "zone=b", "disk", "!gpu", "cores>2"), {
        minLength: 1,
        maxLength: 3,
      })
      .map((texts) => requiring(...texts.map((text) => term(text)))),
    hostile: ["text", 7, true, { nodeSelectorTerms: "x" }],
  },
  preferredNodeAffinity: lists(["affinity", "nodeAffinity", PREFERRED], preference("a"), preference("b")),
  requiredPodAffinity: lists(["affinity", "podAffinity", REQUIRED], podTerm("a"), podTerm("b")),
  preferredPodAffinity: lists(["affinity", "podAffinity", PREFERRED], weighted("a"), weighted("b")),
  requiredPodAntiAffinity: lists(["affinity", "podAntiAffinity", REQUIRED], podTerm("a"), podTerm("b")),
  preferredPodAntiAffinity: lists(["affinity", "podAntiAffinity", PREFERRED], weighted("a"), weighted("b")),
  tolerations: lists(["tolerations"], { key: "a", operator: "Exists" }, { key: "b", operator: "Exists" }),
  topologySpreadConstraints: lists(["topologySpreadConstraints"], spread("zone"), spread("host")),
  schedulingGates: lists(["schedulingGates"], { name: "wait" }, { name: "stay" }),
  schedulerName: names("schedulerName"),
  priorityClassName: names("priorityClassName"),
  runtimeClassName: names("runtimeClassName"),
  nodeName: names("nodeName"),
};
