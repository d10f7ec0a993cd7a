import { canonical, type Json, type JsonObject, own, stringAt } from "../../../core/json.ts";
import { tolerationMeaning } from "../../../core/kubernetes/tolerations.ts";
import type { Path } from "../../../core/path.ts";
import type { Criteria, Field, NameField } from "./criteria.ts";

const REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution";

/** Below a pod's spec, as are all paths here. */
export const REQUIRED_NODE_AFFINITY: Path = ["affinity", "nodeAffinity", REQUIRED];
export const REQUIRED_NODE_TERMS: Path = [...REQUIRED_NODE_AFFINITY, "nodeSelectorTerms"];

/** In the order in which they are merged: a gate comes before the node, for a pod can't have both. */
export const NAMES: readonly NameField[] = [
  "schedulerName",
  "priorityClassName",
  "runtimeClassName",
  "nodeName",
];

/** A list to which a policy's elements are added, each by itself. */
export interface ListPlace {
  readonly criterion: {
    [Key in keyof Criteria]: Criteria[Key] extends readonly JsonObject[] ? Key : never;
  }[keyof Criteria];
  readonly field: Field;
  readonly path: Path;
  /** What one element is called. */
  readonly what: string;
  /** One text for one meaning of an element; two that mean the same have the same. */
  readonly meaning: (element: Json) => string;
  /** What a pod can have once only; elements that agree in it and are not the same are in each other's way. */
  readonly key?: (element: Json) => string;
  /** One element, for people. */
  readonly describe: (element: JsonObject) => string;
}

export const LISTS: readonly ListPlace[] = [
  {
    criterion: "preferredNodeTerms",
    field: "preferredNodeAffinity",
    path: ["affinity", "nodeAffinity", PREFERRED],
    what: "preferred node affinity",
    meaning: canonical,
    describe: weighted,
  },
  podTerms("requiredPodTerms", "podAffinity", REQUIRED, "required pod affinity"),
  podTerms("preferredPodTerms", "podAffinity", PREFERRED, "preferred pod affinity"),
  podTerms("requiredAntiTerms", "podAntiAffinity", REQUIRED, "required pod anti-affinity"),
  podTerms("preferredAntiTerms", "podAntiAffinity", PREFERRED, "preferred pod anti-affinity"),
  {
    criterion: "tolerations",
    field: "tolerations",
    path: ["tolerations"],
    what: "toleration",
    meaning: tolerationMeaning,
    key: tolerationKey,
    describe: tolerationText,
  },
  {
    criterion: "topologySpreadConstraints",
    field: "topologySpreadConstraints",
    path: ["topologySpreadConstraints"],
    what: "topology spread",
    meaning: canonical,
    // The API server refuses a second one of the same pair.
    key: (element) => `${text(element, "topologyKey")} ${text(element, "whenUnsatisfiable")}`,
    describe: (element) => `by ${text(element, "topologyKey")}, ${text(element, "whenUnsatisfiable")}`,
  },
  {
    criterion: "schedulingGates",
    field: "schedulingGates",
    path: ["schedulingGates"],
    what: "scheduling gate",
    meaning: (element) => canonical(own(element, "name") ?? element),
    describe: (element) => text(element, "name"),
  },
];

function podTerms(
  criterion: ListPlace["criterion"],
  field: "podAffinity" | "podAntiAffinity",
  list: string,
  what: string,
): ListPlace {
  return {
    criterion,
    field,
    path: ["affinity", field, list],
    what,
    meaning: canonical,
    describe: list === REQUIRED ? byTopology : weighted,
  };
}

function text(element: Json, member: string): string {
  return stringAt(element, member) ?? "";
}

function byTopology(term: JsonObject): string {
  return `by ${text(term, "topologyKey")}`;
}

function weighted(term: JsonObject): string {
  const topology = stringAt(term, "podAffinityTerm", "topologyKey");
  const weight = `weight ${String(own(term, "weight"))}`;
  return topology === undefined ? weight : `by ${topology}, ${weight}`;
}

/** All but the time for which a taint is borne. */
function tolerationKey(toleration: Json): string {
  const operator = text(toleration, "operator");
  const value = operator === "Exists" ? "" : text(toleration, "value");
  return JSON.stringify([text(toleration, "key"), operator || "Equal", value, text(toleration, "effect")]);
}

/** As kubectl writes taints: `pool=etcd:NoSchedule`. */
function tolerationText(toleration: JsonObject): string {
  const key = text(toleration, "key");
  const operator = text(toleration, "operator");
  const value = text(toleration, "value");
  const sign = operator === "Gt" ? ">" : operator === "Lt" ? "<" : "=";
  const taint = operator === "Exists" ? key || "every taint" : `${key}${sign}${value}`;
  const effect = text(toleration, "effect");
  const seconds = own(toleration, "tolerationSeconds");
  return `${taint}${effect === "" ? "" : `:${effect}`}${typeof seconds === "number" ? ` for ${seconds} s` : ""}`;
}
