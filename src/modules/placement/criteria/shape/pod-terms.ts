import { canonical, type JsonObject, own, stringAt, textOf } from "../../../../core/json.ts";
import { podAffinity, podAntiAffinity } from "../../../../core/kubernetes/schemas.ts";
import type { Criterion } from "../criterion.ts";
import { IMMUTABLE } from "../criterion.ts";
import { type PREFERRED, REQUIRED } from "./affinity-lists.ts";
import { checkPodTerm, checkPreferredPodTerm } from "./check-affinity.ts";
import { listCriterion } from "./list.ts";
import { extendsElement } from "./unmet-elements.ts";

const SCHEMAS = { podAffinity, podAntiAffinity } as const;

/** Terms about other pods. Required ones are enforced, preferred ones have a weight. */
export function podTermsCriterion(
  name: string,
  field: "podAffinity" | "podAntiAffinity",
  list: typeof REQUIRED | typeof PREFERRED,
  text: string,
): Criterion<readonly JsonObject[]> {
  const required = list === REQUIRED;
  return listCriterion({
    name,
    path: ["affinity", field, list],
    text,
    schema: SCHEMAS[field].shape[list],
    check: required ? checkPodTerm : checkPreferredPodTerm,
    meaning: canonical,
    describe: required ? (term) => `by ${stringAt(term, "topologyKey") ?? ""}` : describeWeighted,
    ...(required ? { enforced: { meets: extendsElement, namedBy: "topologyKey" } } : {}),
    kubelet: "ignores",
    mutability: IMMUTABLE,
  });
}

export function describeWeighted(term: JsonObject): string {
  const topology = stringAt(term, "podAffinityTerm", "topologyKey");
  const weight = `weight ${textOf(own(term, "weight"))}`;
  return topology === undefined ? weight : `by ${topology}, ${weight}`;
}
