import type { PolicyRef } from "../../core/finding.ts";
import { at, isObject, type JsonObject } from "../../core/json.ts";
import type { Prepared } from "../../core/kind.ts";
import { type CompiledSelector, compileSelector, demands } from "../../core/kubernetes/label-selector.ts";
import { checkLabelKey, checkLabelValue } from "../../core/kubernetes/names.ts";
import { valuesOf } from "../../core/kubernetes/values.ts";
import type { Path } from "../../core/path.ts";
import { type Problem, problem } from "../../core/problem.ts";
import type { Demand } from "../../core/selector-index.ts";

/** The label by which the API server itself names every namespace. */
export const NAMESPACE_NAME = "kubernetes.io/metadata.name";

/** A policy made ready: selectors compiled, values checked. */
export interface PlacementPolicy {
  readonly ref: PolicyRef;
  readonly priority: number;
  readonly failure: "Ignore" | "Fail";
  /** `undefined`: it can't be read, so whom it would select there is not known. */
  readonly namespaceSelector: CompiledSelector | undefined;
  readonly podSelector: CompiledSelector | undefined;
  /** Why parts of it can't be used; then what it selects follows its failure mode. */
  readonly broken: string | undefined;
  readonly nodeSelector: readonly (readonly [key: string, value: string])[];
  readonly demands: readonly Demand[];
}

/** Demands are worked out when the index asks, which is once or twice in a policy's life: to keep them costs memory for nothing. */
class ReadyPolicy implements PlacementPolicy {
  readonly ref: PolicyRef;
  readonly priority: number;
  readonly failure: "Ignore" | "Fail";
  readonly namespaceSelector: CompiledSelector | undefined;
  readonly podSelector: CompiledSelector | undefined;
  readonly broken: string | undefined;
  readonly nodeSelector: PlacementPolicy["nodeSelector"];

  constructor(policy: Omit<PlacementPolicy, "demands">) {
    this.ref = policy.ref;
    this.priority = policy.priority;
    this.failure = policy.failure;
    this.namespaceSelector = policy.namespaceSelector;
    this.podSelector = policy.podSelector;
    this.broken = policy.broken;
    this.nodeSelector = policy.nodeSelector;
  }

  get demands(): readonly Demand[] {
    return [...demandsOf("pod", this.podSelector), ...demandsOf("namespace", this.namespaceSelector)];
  }
}

/**
 * Never throws and never gives up half-way: what is readable of a broken policy still says whom it means, so that its own failure
 * mode can apply to those, and to nobody else.
 */
export function preparePolicy(
  object: JsonObject,
  ref: PolicyRef,
  scope: "Cluster" | "Namespaced",
): Prepared<PlacementPolicy> {
  const spec = isObject(object["spec"]) ? object["spec"] : {};
  const problems: Problem[] = [];
  const podSelector = selectorAt(spec, "podSelector", problems);
  const namespaceSelector =
    scope === "Cluster" ? selectorAt(spec, "namespaceSelector", problems) : nameSelector(ref.namespace ?? "");
  const nodeSelector = nodeSelectorOf(spec, problems);
  const priority = at(spec, "priority");
  const broken = problems[0];
  const policy = new ReadyPolicy({
    ref,
    priority: typeof priority === "number" && Number.isInteger(priority) ? priority : 0,
    failure: at(spec, "failurePolicy") === "Fail" ? "Fail" : "Ignore",
    namespaceSelector,
    podSelector,
    broken: broken === undefined ? undefined : broken.message,
    nodeSelector,
  });
  // A selector that is readable and selects nothing makes the policy inert, whatever else it says.
  if (podSelector?.kind === "nothing" || namespaceSelector?.kind === "nothing")
    return { policy: undefined, problems };
  // Of a policy without a single readable selector nobody can say whom it means.
  if (podSelector === undefined && (scope === "Namespaced" || namespaceSelector === undefined)) {
    return { policy: undefined, problems };
  }
  return { policy, problems };
}

function selectorAt(spec: JsonObject, field: string, problems: Problem[]): CompiledSelector | undefined {
  const path: Path = ["spec", field];
  const compiled = compileSelector(at(spec, field), path);
  for (const found of compiled.problems) problems.push(problem(found.path, found.message));
  return compiled.problems.length > 0 ? undefined : compiled.selector;
}

function nameSelector(namespace: string): CompiledSelector {
  return {
    kind: "requirements",
    requirements: [{ key: NAMESPACE_NAME, operator: "In", values: valuesOf([namespace]) }],
  };
}

function nodeSelectorOf(spec: JsonObject, problems: Problem[]): (readonly [string, string])[] {
  const labels = at(spec, "nodeSelector");
  if (labels === undefined || labels === null) return [];
  if (!isObject(labels)) {
    problems.push(problem(["spec", "nodeSelector"], "must be an object of label keys and values"));
    return [];
  }
  const pairs: (readonly [string, string])[] = [];
  // Sorted, so that the patch does not depend on how the policy was written.
  for (const key of Object.keys(labels).sort()) {
    const value = labels[key];
    const wrong =
      checkLabelKey(key) ??
      (typeof value === "string" ? checkLabelValue(value) : "a label's value must be a text");
    if (wrong !== undefined) problems.push(problem(["spec", "nodeSelector", key], wrong));
    else if (typeof value === "string") pairs.push([key, value]);
  }
  return pairs;
}

function demandsOf(of: string, selector: CompiledSelector | undefined): Demand[] {
  return selector === undefined ? [] : demands(selector).map(({ key, values }) => ({ of, key, values }));
}

/**
 * Which policy goes first where two want the same field: the higher priority, then cluster before namespace, then the name.
 * The same for every request and every order in which policies were listed.
 */
export function comparePolicies(a: PlacementPolicy, b: PlacementPolicy): number {
  if (a.priority !== b.priority) return b.priority - a.priority;
  const clusterA = a.ref.namespace === undefined;
  const clusterB = b.ref.namespace === undefined;
  if (clusterA !== clusterB) return clusterA ? -1 : 1;
  if (a.ref.name !== b.ref.name) return a.ref.name < b.ref.name ? -1 : 1;
  return (a.ref.namespace ?? "") < (b.ref.namespace ?? "") ? -1 : 1;
}
