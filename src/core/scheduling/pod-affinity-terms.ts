// Terms of pod affinity and anti-affinity, ready to be matched with pods.
import { at, isObject, type Json, type JsonObject, listAt, own, stringAt } from "../json.ts";
import { labelsOf, namespaceOf } from "../kubernetes/object.ts";
import {
  type CompiledSelector,
  compileSelector,
  labelValue,
  matches,
  type Requirement,
} from "../kubernetes/selectors/label-selector.ts";
import { valuesOf } from "../kubernetes/selectors/values.ts";

export interface AffinityTerm {
  readonly topologyKey: string;
  readonly namespaces: ReadonlySet<string>;
  readonly namespaceSelector: CompiledSelector;
  readonly selector: CompiledSelector;
}

/**
 * The API server adds matchLabelKeys and mismatchLabelKeys to the selector when a pod is created, so a placed pod has
 * them there; a future pod gets them here.
 */
type Stage = "placed" | "pending";

const REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution";

/** `undefined` if a term can't be read. */
export function affinityTerms(pod: JsonObject, stage: Stage): readonly AffinityTerm[] | undefined {
  return termsOf(pod, "podAffinity", stage);
}

export function antiAffinityTerms(pod: JsonObject, stage: Stage): readonly AffinityTerm[] | undefined {
  return termsOf(pod, "podAntiAffinity", stage);
}

function termsOf(pod: JsonObject, field: string, stage: Stage): readonly AffinityTerm[] | undefined {
  const required = at(pod, "spec", "affinity", field, REQUIRED) ?? [];
  if (!Array.isArray(required)) return undefined;
  const created = stage === "placed" || (stringAt(pod, "metadata", "uid") ?? "") !== "";
  const terms: AffinityTerm[] = [];
  for (const item of required) {
    const term = compileTerm(item, pod, created);
    if (term === undefined) return undefined;
    terms.push(term);
  }
  return terms;
}

function compileTerm(item: Json, pod: JsonObject, created: boolean): AffinityTerm | undefined {
  const topologyKey = own(item, "topologyKey");
  if (!isObject(item) || typeof topologyKey !== "string") return undefined;
  const selector = compileSelector(own(item, "labelSelector"), []);
  const namespaceSelector = compileSelector(own(item, "namespaceSelector"), []);
  const names = own(item, "namespaces") ?? [];
  if (selector.problems.length > 0 || namespaceSelector.problems.length > 0) return undefined;
  if (!Array.isArray(names) || !names.every((name: Json) => typeof name === "string")) return undefined;
  const ownNamespace = names.length === 0 && (own(item, "namespaceSelector") ?? null) === null;
  const keys = created ? [] : keyRequirements(item, labelsOf(pod));
  return {
    topologyKey,
    namespaces: new Set<string>(ownNamespace ? [namespaceOf(pod)] : names),
    namespaceSelector: namespaceSelector.selector,
    selector: narrowed(selector.selector, keys),
  };
}

function keyRequirements(item: Json, labels: JsonObject | undefined): readonly Requirement[] {
  return [
    ...labelKeyRequirements(listAt(item, "matchLabelKeys"), labels, "In"),
    ...labelKeyRequirements(listAt(item, "mismatchLabelKeys"), labels, "NotIn"),
  ];
}

/** The labels of the pod by these keys; keys that it does not have are left out. */
export function labelKeyRequirements(
  keys: readonly Json[],
  labels: JsonObject | undefined,
  operator: "In" | "NotIn",
): readonly Requirement[] {
  const requirements: Requirement[] = [];
  for (const key of keys) {
    const value = typeof key === "string" ? labelValue(labels, key) : undefined;
    if (typeof key === "string" && value !== undefined)
      requirements.push({ key, operator, values: valuesOf([value]) });
  }
  return requirements;
}

/** The selector with more requirements. One that selects nothing still does. */
export function narrowed(selector: CompiledSelector, more: readonly Requirement[]): CompiledSelector {
  if (selector.kind === "nothing" || more.length === 0) return selector;
  const requirements = selector.kind === "requirements" ? selector.requirements : [];
  return { kind: "requirements", requirements: [...requirements, ...more] };
}

/** Whether a term is about pods of a namespace. */
export function coversNamespace(
  term: AffinityTerm,
  namespace: string,
  labels: JsonObject | undefined,
): boolean {
  return term.namespaces.has(namespace) || matches(term.namespaceSelector, labels);
}
