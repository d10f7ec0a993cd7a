import type { PolicyRef } from "../../../core/evaluate/finding.ts";
import { at, isObject, type JsonObject } from "../../../core/json.ts";
import {
  type CompiledSelector,
  compileSelector,
  requiredLabels,
} from "../../../core/kubernetes/selectors/label-selector.ts";
import { valuesOf } from "../../../core/kubernetes/selectors/values.ts";
import type { Path } from "../../../core/path.ts";
import type { Prepared } from "../../../core/policy/kind.ts";
import { describeProblem, type Problem, problem } from "../../../core/policy/problem.ts";
import type { RequiredLabel } from "../../../core/policy/selector-index.ts";
import { parseCriteria } from "../criteria/criteria.ts";
import type { Criteria } from "../criteria/criterion.ts";

/** The label by which the API server itself names every namespace. */
export const NAMESPACE_NAME = "kubernetes.io/metadata.name";

/** The choices of a policy that are one word each; the first is what an absent one means. */
export const TARGETS = ["Both", "Pods", "Templates"] as const;
export const ON_UPDATE = ["Restore", "Inject"] as const;
export const ON_CONFLICT = ["Skip", "Refuse"] as const;
export const FAILURE = ["Ignore", "Fail"] as const;
export const ENFORCEMENT = ["None", "Warn", "Refuse"] as const;

/** What a policy is apart from whom it selects. */
interface Manner {
  readonly priority: number;
  readonly failure: (typeof FAILURE)[number];
  /** Whether pods themselves, templates, or both get the criteria. */
  readonly targets: (typeof TARGETS)[number];
  /** What an UPDATE gets: only what it lost, or what the policy wants now. */
  readonly onUpdate: (typeof ON_UPDATE)[number];
  /** What follows where the object, or a policy that goes before, says otherwise. */
  readonly onConflict: (typeof ON_CONFLICT)[number];
  /** What follows where an object comes to be stored without what the policy requires. */
  readonly enforcement: (typeof ENFORCEMENT)[number];
}

/** A policy made ready: selectors compiled, values checked. */
export interface PlacementPolicy extends Manner {
  readonly ref: PolicyRef;
  /** `undefined`: it can't be read, so whom it would select there is not known. */
  readonly namespaceSelector: CompiledSelector | undefined;
  readonly podSelector: CompiledSelector | undefined;
  /** Why parts of it can't be used; then what it selects follows its failure mode. */
  readonly broken: string | undefined;
  readonly criteria: Criteria;
  readonly requiredLabels: readonly RequiredLabel[];
}

/** Demands are worked out when the index asks, which is once or twice in a policy's life: to keep them costs memory for nothing. */
class ReadyPolicy implements PlacementPolicy {
  readonly ref: PolicyRef;
  readonly priority: number;
  readonly failure: Manner["failure"];
  readonly targets: Manner["targets"];
  readonly onUpdate: Manner["onUpdate"];
  readonly onConflict: Manner["onConflict"];
  readonly enforcement: Manner["enforcement"];
  readonly namespaceSelector: CompiledSelector | undefined;
  readonly podSelector: CompiledSelector | undefined;
  readonly broken: string | undefined;
  readonly criteria: Criteria;

  constructor(policy: Omit<PlacementPolicy, "requiredLabels">) {
    this.ref = policy.ref;
    this.priority = policy.priority;
    this.failure = policy.failure;
    this.targets = policy.targets;
    this.onUpdate = policy.onUpdate;
    this.onConflict = policy.onConflict;
    this.enforcement = policy.enforcement;
    this.namespaceSelector = policy.namespaceSelector;
    this.podSelector = policy.podSelector;
    this.broken = policy.broken;
    this.criteria = policy.criteria;
  }

  get requiredLabels(): readonly RequiredLabel[] {
    return [...labelsOf("pod", this.podSelector), ...labelsOf("namespace", this.namespaceSelector)];
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
  const criteria = parseCriteria(spec, problems);
  const manner = mannerOf(spec, problems);
  const broken = problems.find(({ severity }) => severity === "error");
  const policy = new ReadyPolicy({
    ref,
    ...manner,
    namespaceSelector,
    podSelector,
    broken: broken === undefined ? undefined : describeProblem(broken),
    criteria,
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

function mannerOf(spec: JsonObject, problems: Problem[]): Manner {
  const priority = at(spec, "priority");
  return {
    priority: typeof priority === "number" && Number.isInteger(priority) ? priority : 0,
    failure: choiceAt(spec, "failurePolicy", FAILURE, problems),
    targets: choiceAt(spec, "targets", TARGETS, problems),
    onUpdate: choiceAt(spec, "onUpdate", ON_UPDATE, problems),
    onConflict: choiceAt(spec, "onConflict", ON_CONFLICT, problems),
    enforcement: choiceAt(spec, "enforcement", ENFORCEMENT, problems),
  };
}

/** One of a few words; what is none of them is told, and taken for the first. */
function choiceAt<Word extends string>(
  spec: JsonObject,
  field: string,
  words: readonly [Word, ...Word[]],
  problems: Problem[],
): Word {
  const value = at(spec, field);
  const found = words.find((word) => word === value);
  if (found === undefined && value !== undefined && value !== null)
    problems.push(problem(["spec", field], `is none of ${words.join(", ")}`));
  return found ?? words[0];
}

function labelsOf(of: string, selector: CompiledSelector | undefined): RequiredLabel[] {
  return selector === undefined
    ? []
    : requiredLabels(selector).map(({ key, values }) => ({ of, key, values }));
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
