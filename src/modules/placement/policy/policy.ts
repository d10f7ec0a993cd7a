import { at, canonical, isObject, type JsonObject } from "../../../core/json.ts";
import { NAMESPACE_NAME } from "../../../core/kubernetes/object.ts";
import {
  type CompiledSelector,
  compileSelector,
  requiredLabels,
} from "../../../core/kubernetes/selectors/label-selector.ts";
import { valuesOf } from "../../../core/kubernetes/selectors/values.ts";
import type { Path } from "../../../core/path.ts";
import type { Prepared } from "../../../core/policy/kind.ts";
import type { PolicyRef } from "../../../core/policy/policy-ref.ts";
import { describeProblem, type Problem, problem } from "../../../core/policy/problem.ts";
import type { RequiredLabel } from "../../../core/policy/selector-index.ts";
import { parseCriteria } from "../criteria/criteria.ts";
import type { Criteria } from "../criteria/criterion.ts";
import { type FromNamespace, parseFromNamespace } from "../criteria/from-namespace.ts";
import { type Size, sumOf } from "../criteria/work-limit.ts";

/** The enumerations of a policy; the first value is the default, for `FAILURE` unless `failsClosed`. */
export const TARGETS = ["Both", "Pods", "Templates"] as const;
export const ON_UPDATE = ["Restore", "Inject"] as const;
export const ON_CONFLICT = ["Skip", "Refuse"] as const;
export const FAILURE = ["Ignore", "Fail"] as const;
export const ENFORCEMENT = ["None", "Warn", "Refuse"] as const;

/** The settings of a policy apart from selectors and criteria. */
interface Settings {
  readonly priority: number;
  readonly failure: (typeof FAILURE)[number];
  /** Whether pods themselves, templates, or both get the criteria. */
  readonly targets: (typeof TARGETS)[number];
  /** The effect on an UPDATE: restore lost injections, or apply the current policy. */
  readonly onUpdate: (typeof ON_UPDATE)[number];
  /** The reaction if the object, or a policy of higher precedence, has another value. */
  readonly onConflict: (typeof ON_CONFLICT)[number];
  /** The reaction if an object does not meet the policy's requirements. */
  readonly enforcement: (typeof ENFORCEMENT)[number];
}

/** A prepared policy: selectors compiled, values checked. */
export interface PlacementPolicy extends Settings {
  readonly ref: PolicyRef;
  /** `undefined`: it can't be read, so its selection is unknown. */
  readonly namespaceSelector: CompiledSelector | undefined;
  readonly podSelector: CompiledSelector | undefined;
  /** The same string for equal namespace selectors. Only for fail-closed cluster policies, whose namespaces hooks name. */
  readonly namespaceSelectorKey: string | undefined;
  /** Why it is invalid; then its failure mode decides for the objects that it selects. */
  readonly broken: string | undefined;
  readonly criteria: Criteria;
  /** Bounds the work on one object. */
  readonly size: Size;
  /** Further criteria, which depend on the namespace; `undefined`: none. */
  readonly fromNamespace: FromNamespace | undefined;
  readonly requiredLabels: readonly RequiredLabel[];
}

/** Computes required labels when the index needs them, once or twice in the life of a policy: caching them would waste memory. */
class ReadyPolicy implements PlacementPolicy {
  readonly ref: PolicyRef;
  readonly priority: number;
  readonly failure: Settings["failure"];
  readonly targets: Settings["targets"];
  readonly onUpdate: Settings["onUpdate"];
  readonly onConflict: Settings["onConflict"];
  readonly enforcement: Settings["enforcement"];
  readonly namespaceSelector: CompiledSelector | undefined;
  readonly podSelector: CompiledSelector | undefined;
  readonly namespaceSelectorKey: string | undefined;
  readonly broken: string | undefined;
  readonly criteria: Criteria;
  readonly size: Size;
  readonly fromNamespace: FromNamespace | undefined;

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
    this.namespaceSelectorKey = policy.namespaceSelectorKey;
    this.broken = policy.broken;
    this.criteria = policy.criteria;
    this.size = policy.size;
    this.fromNamespace = policy.fromNamespace;
  }

  get requiredLabels(): readonly RequiredLabel[] {
    return [...labelsOf("pod", this.podSelector), ...labelsOf("namespace", this.namespaceSelector)];
  }
}

/**
 * Never throws and never stops half-way: the readable part of an invalid policy still selects objects, so that its own
 * failure mode applies to those, and to nothing else.
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
  const fromNamespace = scope === "Cluster" ? parseFromNamespace(spec, problems) : undefined;
  const settings = settingsOf(spec, problems);
  const broken = problems.find(({ severity }) => severity === "error");
  const policy = new ReadyPolicy({
    ref,
    ...settings,
    namespaceSelector,
    podSelector,
    namespaceSelectorKey:
      scope === "Cluster" && settings.failure === "Fail" && isObject(spec["namespaceSelector"])
        ? canonical(spec["namespaceSelector"])
        : undefined,
    broken: broken === undefined ? undefined : describeProblem(broken),
    criteria,
    size: sizeOfCriteria(criteria),
    fromNamespace,
  });
  // A readable selector that selects nothing makes the policy inert, whatever else it contains.
  if (podSelector?.kind === "nothing" || namespaceSelector?.kind === "nothing")
    return { policy: undefined, problems };
  // The selection of a policy without any readable selector is unknown.
  if (podSelector === undefined && (scope === "Namespaced" || namespaceSelector === undefined)) {
    return { policy: undefined, problems };
  }
  return { policy, problems };
}

/** The policy with the criteria that it has in one namespace. */
export function withCriteria(policy: PlacementPolicy, criteria: Criteria): PlacementPolicy {
  return { ...policy, requiredLabels: [], criteria, size: sizeOfCriteria(criteria) };
}

function sizeOfCriteria(criteria: Criteria): Size {
  return sumOf(criteria.map(({ criterion, value }) => criterion.sizeOf(value)));
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

function settingsOf(spec: JsonObject, problems: Problem[]): Settings {
  const priority = at(spec, "priority");
  return {
    priority: typeof priority === "number" && Number.isInteger(priority) ? priority : 0,
    failure: choiceAt(spec, "failurePolicy", FAILURE, problems, failsClosed(spec) ? "Fail" : "Ignore"),
    targets: choiceAt(spec, "targets", TARGETS, problems),
    onUpdate: choiceAt(spec, "onUpdate", ON_UPDATE, problems),
    onConflict: choiceAt(spec, "onConflict", ON_CONFLICT, problems),
    enforcement: choiceAt(spec, "enforcement", ENFORCEMENT, problems),
  };
}

/**
 * Whether a policy refuses the objects that it selects while usher can't evaluate it. One that refuses unmet
 * requirements does so by default: otherwise a tenant that makes usher slow would bypass it.
 */
function failsClosed(spec: JsonObject): boolean {
  const given = spec["failurePolicy"] ?? undefined;
  return given === undefined ? spec["enforcement"] === "Refuse" : given === "Fail";
}

/** One of an enumeration; any other value is a problem and counts as the default. */
function choiceAt<Word extends string>(
  spec: JsonObject,
  field: string,
  words: readonly [Word, ...Word[]],
  problems: Problem[],
  otherwise: Word = words[0],
): Word {
  const value = at(spec, field);
  const found = words.find((word) => word === value);
  if (found === undefined && value !== undefined && value !== null)
    problems.push(problem(["spec", field], `must be one of ${words.join(", ")}`));
  return found ?? otherwise;
}

function labelsOf(of: string, selector: CompiledSelector | undefined): RequiredLabel[] {
  return selector === undefined
    ? []
    : requiredLabels(selector).map(({ key, values }) => ({ of, key, values }));
}

/**
 * Precedence: the higher priority, then cluster before namespace, then the name. The same for every request and every order in which
 * policies were listed.
 */
export function comparePolicies(a: PlacementPolicy, b: PlacementPolicy): number {
  if (a.priority !== b.priority) return b.priority - a.priority;
  const clusterA = a.ref.namespace === undefined;
  const clusterB = b.ref.namespace === undefined;
  if (clusterA !== clusterB) return clusterA ? -1 : 1;
  if (a.ref.name !== b.ref.name) return a.ref.name < b.ref.name ? -1 : 1;
  return (a.ref.namespace ?? "") < (b.ref.namespace ?? "") ? -1 : 1;
}
