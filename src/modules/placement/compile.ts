/**
 * Placement as policies of the API server itself: pods get at their creation what usher would add, by a
 * MutatingAdmissionPolicy for each policy, and those that do not meet what a policy enforces are refused by a
 * ValidatingAdmissionPolicy.
 */

import { exemptNamespaces, type Installation } from "../../core/installation/installation.ts";
import { equal, type Json, type JsonObject, listAt } from "../../core/json.ts";
import { admissionPolicy, celString, celValue, selectorObject } from "../../core/kubernetes/cel.ts";
import { MIRROR_ANNOTATION, NAMESPACE_NAME } from "../../core/kubernetes/object.ts";
import { POD } from "../../core/kubernetes/workloads.ts";
import type { CompileContext, CompiledPolicy, LeftOut } from "../../core/module/compile.ts";
import { notCompiled, withinBudget } from "../../core/module/compile.ts";
import { fieldPath } from "../../core/path.ts";
import { type PolicyRef, policyKey, policyName } from "../../core/policy/policy-ref.ts";
import { type CelCheck, compileCriteria, usedOnce, withNamespace } from "./criteria/cel.ts";
import { wantedOf } from "./criteria/criterion.ts";
import { HAS_NO_NODE } from "./criteria/node-name.ts";
import { CONTROLLER_NAMES } from "./enforce/enforcement-scope.ts";
import { haveCommonObject } from "./place/contradictions.ts";
import { comparePolicies, type PlacementPolicy, withCriteria } from "./policy/policy.ts";
import { isPlaced, trustedControllers } from "./settings.ts";

/** Every policy, in the order in which usher applies them. */
export function compile({ policies, installation }: CompileContext<PlacementPolicy>): CompiledPolicy[] {
  const sorted = [...policies].sort(comparePolicies).map(withMarks);
  return sorted.map((policy) => compilePolicy(policy, sorted, installation));
}

/** The policy with a mark in place of each value that it takes from the namespace. A policy that takes none, or that marks can't express, stays as it is. */
function withMarks(policy: PlacementPolicy): PlacementPolicy {
  const marked = policy.fromNamespace?.marked();
  return marked === undefined || "impossible" in marked ? policy : withCriteria(policy, marked.criteria);
}

function compilePolicy(
  policy: PlacementPolicy,
  all: readonly PlacementPolicy[],
  installation: Installation,
): CompiledPolicy {
  const { ref } = policy;
  const why = whyNot(policy, installation);
  if (why !== undefined) return notCompiled(ref, ...why);
  const { variables, patches, checks, cost, leftOut } = withNamespace(
    compileCriteria(policy.criteria),
    policy.fromNamespace?.values ?? [],
  );
  if (patches.length === 0)
    return notCompiled(ref, "criteria", "no pod could get any of them: they contradict themselves");
  const name = objectName(ref);
  const common = { failurePolicy: policy.failure, matchConstraints: matchConstraints(policy, installation) };
  const spec: JsonObject = {
    ...common,
    // As usher's own webhook: a later change of the pod by another policy or webhook is seen.
    reinvocationPolicy: "IfNeeded",
    matchConditions: LEFT_ALONE,
    variables,
    mutations: [{ patchType: "JSONPatch", jsonPatch: { expression: patches.join(" +\n") } }],
  };
  const enforced = policy.enforcement === "None" ? [] : checks;
  const enforcement = { ...common, matchConditions: judged(installation), ...validationsOf(ref, enforced) };
  const action = policy.enforcement === "Refuse" ? "Deny" : "Warn";
  return withinBudget({
    policy: ref,
    cost,
    objects: [
      ...admissionPolicy("MutatingAdmissionPolicy", name, spec),
      ...(enforced.length === 0
        ? []
        : admissionPolicy("ValidatingAdmissionPolicy", name, enforcement, { validationActions: [action] })),
    ],
    leftOut: [...leftOutOf(policy), ...leftOut, ...orderOf(policy, all)],
  });
}

/** Without validations if the policy only prefers. */
function validationsOf(ref: PolicyRef, checks: readonly CelCheck[]): JsonObject {
  const known = usedOnce(checks.flatMap(({ variables = [] }) => variables));
  return {
    variables: known.filter(({ name }) =>
      checks.some(({ expression }) => expression.includes(`variables.${name}`)),
    ),
    validations: checks.map(({ expression, path, wants }) => ({
      expression,
      reason: "Forbidden",
      message: `policy ${policyName(ref)} requires ${wants} at ${fieldPath(["spec", ...path])}, which the pod does not have; remove what conflicts with it, or exempt the pod in the policy (USHER-P30)`,
    })),
  };
}

/** The part of a policy that is not compiled at all, and the reason. */
function whyNot(policy: PlacementPolicy, installation: Installation): [string, string] | undefined {
  if (policy.broken !== undefined) return ["the policy", `it is not valid: ${policy.broken}`];
  const marked = policy.fromNamespace?.marked();
  if (marked !== undefined && "impossible" in marked) return ["fromNamespace", marked.impossible];
  if (policy.targets === "Templates")
    return [
      "templates",
      "an in-tree policy selects by the labels of an object, not by those of its template",
    ];
  if (!isPlaced(POD, installation))
    return ["pods", "modules.placement.resources of the configuration does not name pods"];
  if (policy.criteria.length === 0) return ["criteria", "it has none"];
  return undefined;
}

/** Names of namespaces have no dot: no two policies share a name. */
function objectName({ namespace, name }: PolicyRef): string {
  return `usher-placement${namespace === undefined ? "" : `-${namespace}`}.${name}`;
}

function matchConstraints(
  { podSelector, namespaceSelector }: PlacementPolicy,
  installation: Installation,
): JsonObject {
  const exempt = [...new Set([...exemptNamespaces(installation), ...(installation.excluded ?? [])])].sort();
  const inside = namespaceSelector === undefined ? {} : selectorObject(namespaceSelector);
  return {
    resourceRules: [{ apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["pods"] }],
    namespaceSelector: {
      matchExpressions: [
        ...listAt(inside, "matchExpressions"),
        { key: NAMESPACE_NAME, operator: "NotIn", values: exempt },
      ],
    },
    ...(podSelector === undefined ? {} : { objectSelector: selectorObject(podSelector) }),
  };
}

const MIRROR = `${celString(MIRROR_ANNOTATION)} in object.metadata.?annotations.orValue({})`;
const OF_DAEMON_SET =
  'object.metadata.?ownerReferences.orValue([]).exists(o, o.?controller.orValue(false) && o.kind == "DaemonSet" && o.apiVersion.startsWith("apps/"))';

/** The pods that usher changes: see `leftAlone`. */
const LEFT_ALONE: readonly JsonObject[] = [
  { name: "without-a-node", expression: HAS_NO_NODE },
  { name: "not-a-mirror-pod", expression: `!(${MIRROR})` },
  { name: "not-of-a-daemon-set", expression: `!${OF_DAEMON_SET}` },
];

/** The pods that enforcement judges: see `enforcementScope`. */
function judged(installation: Installation): readonly JsonObject[] {
  const trusted = trustedControllers(installation);
  const names = [
    ...CONTROLLER_NAMES,
    ...trusted.flatMap((one) =>
      one.kind === "user"
        ? [one.name]
        : one.namespacePrefix === true
          ? []
          : [`system:serviceaccount:${one.namespace}:${one.name}`],
    ),
  ];
  const prefixes = trusted.flatMap((one) =>
    one.kind === "serviceAccount" && one.namespacePrefix === true
      ? [
          `request.userInfo.username.matches(${celString(`^system:serviceaccount:${one.namespace}[^:]*:${one.name.replaceAll(".", "[.]")}$`)})`,
        ]
      : [],
  );
  const controller = [`request.userInfo.username in ${celValue(names)}`, ...prefixes].join(" || ");
  return [
    {
      name: "not-a-mirror-pod",
      expression: `!(${MIRROR} && request.userInfo.username.startsWith("system:node:"))`,
    },
    { name: "not-by-a-controller", expression: `!(${OF_DAEMON_SET} && (${controller}))` },
  ];
}

/** The parts of a policy that pods of the API server's own policies do not get, or not in the same way. */
function leftOutOf({ targets, onConflict, onUpdate, enforcement }: PlacementPolicy): LeftOut[] {
  const found: LeftOut[] = [];
  if (targets === "Both")
    found.push({
      what: "templates",
      why: "workloads do not show the criteria, and pods of DaemonSets do not get them",
    });
  if (onConflict === "Refuse")
    found.push({ what: "onConflict: Refuse", why: "a pod with another value is admitted and keeps it" });
  if (onUpdate === "Inject")
    found.push({ what: "onUpdate: Inject", why: "a gated pod that is updated gets nothing" });
  if (enforcement !== "None")
    found.push({
      what: `enforcement: ${enforcement}`,
      why: "only new pods are checked, not templates and not updates",
    });
  return found;
}

function orderOf(policy: PlacementPolicy, all: readonly PlacementPolicy[]): LeftOut[] {
  const rivals = all.filter((other) => other !== policy && dependOnOrder(policy, other));
  if (rivals.length === 0) return [];
  const why = `the API server applies policies in any order, and ${namesOf(rivals)} may get in first`;
  return [{ what: "the order of policies", why }];
}

function namesOf(policies: readonly PlacementPolicy[]): string {
  const [first, ...more] = policies.map(({ ref }) => policyName(ref));
  return more.length === 0 ? `${first}` : `${first} and ${more.length} more`;
}

/** Whether the result of two policies for one pod may depend on which is applied first. */
function dependOnOrder(a: PlacementPolicy, b: PlacementPolicy): boolean {
  if (policyKey(a.ref) === policyKey(b.ref) || b.broken !== undefined || b.targets === "Templates")
    return false;
  if (!haveCommonObject(a, b)) return false;
  const [mine, theirs] = [a, b].map(({ criteria }) => criteria.map(({ criterion }) => criterion.firstCounts));
  if (mine?.includes("always") || theirs?.includes("always")) return true;
  if (mine?.includes("for nodes") && theirs?.includes("for nodes")) return true;
  return a.criteria.some(({ criterion, value }) => {
    const other = wantedOf(b.criteria, criterion);
    return (
      criterion.firstCounts === "for other values" &&
      other !== undefined &&
      // Marks are equal where values are not.
      (!equal(other as Json, value as Json) || (a.fromNamespace ?? b.fromNamespace) !== undefined)
    );
  });
}
