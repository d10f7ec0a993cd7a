import { hasMatchConditions } from "../../../core/kubernetes/versions.ts";
import type { Hook, Rule } from "../../../core/module/hook.ts";
import type { View } from "../../../core/view/view.ts";
import { declaration } from "../declaration.ts";
import type { ProjectLimits } from "../policy/policy.ts";
import { canBeLimited, canBeLimitedHere, onlyStamped, REQUESTER_CHANGES } from "./conditions.ts";
import { isOperandAsked } from "./operand-webhook.ts";

const MODULE = declaration.name;
const NAMESPACES = `${MODULE}-namespaces`;

const PROJECT_REQUESTS: Rule = {
  groups: ["project.openshift.io"],
  versions: ["v1"],
  resources: ["projectrequests"],
  operations: ["CREATE"],
  scope: "Cluster",
};

const NAMESPACE: Omit<Rule, "operations" | "resources"> = {
  groups: [""],
  versions: ["v1"],
  scope: "Cluster",
};

/**
 * The hooks of the ProjectRequestLimit named `cluster`. Without one nothing is registered, and without match conditions
 * nothing is fail-closed.
 */
export function limitHooks([limits]: readonly ProjectLimits[], view: View): Hook[] {
  const conditional = hasMatchConditions(view);
  return [
    { ...projectRequestHook(limits, conditional), withdrawn: isOperandAsked(view) },
    stamp(limits, conditional),
    ...namespaces(limits, conditional),
  ];
}

/** Covers ProjectRequests. */
export function projectRequestHook(limits: ProjectLimits | undefined, conditional: boolean): Hook {
  return {
    ...common(limits),
    name: MODULE,
    phase: "validate",
    rules: limits === undefined ? [] : [PROJECT_REQUESTS],
    failure: limits?.failurePolicy === "Fail" ? "closed" : "open",
    tooLarge: "deny",
    // ProjectRequests are in no namespace, so nothing is left out and no shadow hook is needed.
    openShadow: true,
    ...(limits === undefined || !conditional
      ? {}
      : { conditions: [{ name: "can-be-limited", expression: canBeLimited(limits) }] }),
  };
}

/** Fail-open, for all users: validation refuses a namespace that it missed if its creator can be limited. */
function stamp(limits: ProjectLimits | undefined, conditional: boolean): Hook {
  return {
    ...common(limits),
    name: `${MODULE}-requester`,
    phase: "mutate",
    rules: namespaceRules(limits, conditional),
    failure: "open",
    tooLarge: "allow",
    sideEffects: "None",
    // Another webhook may have changed the requester since.
    reinvocation: "IfNeeded",
    ...(conditional ? { conditions: [CHANGES] } : {}),
  };
}

const CHANGES = { name: "requester-changes", expression: REQUESTER_CHANGES };

/**
 * Fail-closed only for users that can be limited, and only if match conditions exclude all others. The fail-open hook
 * covers users that can't be limited and are not exempt: their requester is checked.
 */
function namespaces(limits: ProjectLimits | undefined, conditional: boolean): Hook[] {
  const rules = namespaceRules(limits, conditional);
  const hook: Hook = {
    ...common(limits),
    name: NAMESPACES,
    phase: "validate",
    rules,
    failure: "open",
    tooLarge: "deny",
  };
  if (limits === undefined || !conditional) return [hook];
  return [
    {
      ...hook,
      failure: limits.failurePolicy === "Ignore" ? "open" : "closed",
      openShadow: true,
      conditions: [{ name: "can-be-limited", expression: canBeLimitedHere(limits) }, CHANGES],
    },
    {
      ...hook,
      name: `${NAMESPACES}-unlimited`,
      askedAs: NAMESPACES,
      conditions: [{ name: "only-stamped", expression: onlyStamped(limits) }, CHANGES],
    },
  ];
}

/**
 * Every route to the requester. A deletion updates status and finalizers: without match conditions each would wait for
 * usher, so these routes are omitted there, and the status reports it.
 */
function namespaceRules(limits: ProjectLimits | undefined, conditional: boolean): Rule[] {
  if (limits?.namespaces !== true) return [];
  const whole: Rule = { ...NAMESPACE, resources: ["namespaces"], operations: ["CREATE", "UPDATE"] };
  const parts = ["namespaces/status", "namespaces/finalize"];
  return conditional ? [whole, { ...NAMESPACE, resources: parts, operations: ["UPDATE"] }] : [whole];
}

function common(
  limits: ProjectLimits | undefined,
): Pick<Hook, "module" | "staysClosed" | "timeoutSeconds" | "sideEffects"> {
  return {
    module: MODULE,
    // A limit that ends with the replicas could be passed by ending them.
    staysClosed: true,
    timeoutSeconds: limits?.timeoutSeconds ?? 5,
    // An exact count writes the ledger.
    sideEffects: limits?.count === "Exact" ? "NoneOnDryRun" : "None",
  };
}
