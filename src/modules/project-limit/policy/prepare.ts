import { at, isObject, type Json, type JsonObject, listAt, stringAt } from "../../../core/json.ts";
import { checkLabelKey, checkLabelValue } from "../../../core/kubernetes/names.ts";
import { schemaProblems } from "../../../core/policy/check-schema.ts";
import type { Prepared } from "../../../core/policy/kind.ts";
import type { PolicyRef } from "../../../core/policy/policy-ref.ts";
import { describeProblem, idle, PROBLEM, type Problem, problem } from "../../../core/policy/problem.ts";
import { checkExtensions } from "./extensions.ts";
import { type LimitRule, type ProjectLimits, SINGLETON } from "./policy.ts";
import { shadowedRules } from "./shadowed.ts";
import { limitSpec } from "./spec-schema.ts";

/**
 * The control plane, and on OpenShift the API server that creates the Namespace of an admitted ProjectRequest: its
 * annotation names the user, and is kept.
 */
const EXEMPT_GROUPS = [
  "system:masters",
  "system:serviceaccounts:kube-system",
  "system:serviceaccounts:openshift-apiserver",
];

const TIMEOUT_SECONDS = 5;

/** Checks beyond the schema. */
export function checkLimits(object: JsonObject): Problem[] {
  const spec = isObject(object["spec"]) ? object["spec"] : {};
  const rules = listAt(spec, "limits").map(ruleOf);
  return [...checkSelectors(spec), ...checkExtensions(spec), ...shadowedRules(rules, exemptOf(spec))];
}

/** Another name is not an error: the object has no effect. */
export function ignoredName(object: JsonObject): Problem[] {
  const name = stringAt(object, "metadata", "name");
  if (name === undefined || name === SINGLETON) return [];
  return [
    idle(
      PROBLEM.noEffect,
      ["metadata", "name"],
      `only the object named ${SINGLETON} counts; this one is ignored`,
    ),
  ];
}

/** Only `cluster` becomes a policy. */
export function prepareLimits(object: JsonObject, ref: PolicyRef): Prepared<ProjectLimits> {
  const prepared = prepareSpec(object, ref);
  const isIgnored = stringAt(object, "metadata", "name") !== SINGLETON;
  return isIgnored ? { ...prepared, policy: undefined } : prepared;
}

/** A spec with errors is not applied in part: the object is marked invalid. */
export function prepareSpec(object: JsonObject, ref: PolicyRef): Prepared<ProjectLimits> {
  const spec = isObject(object["spec"]) ? object["spec"] : {};
  const problems = [...schemaProblems(limitSpec, spec), ...checkLimits(object)];
  return { policy: limitsOf(spec, ref, firstError(problems)), problems };
}

function firstError(problems: readonly Problem[]): string | undefined {
  const error = problems.find(({ severity }) => severity === "error");
  return error === undefined ? undefined : describeProblem(error);
}

/** Reads the readable part: exemptions of an invalid spec must be known too. */
function limitsOf(spec: JsonObject, ref: PolicyRef, invalid: string | undefined): ProjectLimits {
  const timeout = at(spec, "timeoutSeconds");
  const extensions = hasExtensions(spec);
  return {
    ref,
    rules: listAt(spec, "limits").map(ruleOf),
    maxProjectsForSystemUsers: integer(at(spec, "maxProjectsForSystemUsers")),
    maxProjectsForServiceAccounts: integer(at(spec, "maxProjectsForServiceAccounts")),
    serviceAccountsPer: at(spec, "serviceAccountsPer") === "Namespace" ? "Namespace" : "Account",
    count: extensions && at(spec, "count") !== "BestEffort" ? "Exact" : "BestEffort",
    failurePolicy: at(spec, "failurePolicy") === "Ignore" ? "Ignore" : "Fail",
    timeoutSeconds: integer(timeout) ?? TIMEOUT_SECONDS,
    namespaces: isObject(at(spec, "namespaces")),
    exempt: exemptOf(spec),
    trustedAnnotators: new Set(strings(at(spec, "trustedAnnotators"))),
    extensions,
    invalid,
  };
}

function hasExtensions(spec: JsonObject): boolean {
  return at(spec, "extensions") !== "Disabled";
}

function exemptOf(spec: JsonObject): ProjectLimits["exempt"] {
  if (!hasExtensions(spec)) return { users: new Set(), groups: new Set() };
  const groups = at(spec, "exempt", "groups");
  return {
    users: new Set(strings(at(spec, "exempt", "users"))),
    groups: new Set(Array.isArray(groups) ? strings(groups) : EXEMPT_GROUPS),
  };
}

function ruleOf(rule: Json): LimitRule {
  const selector = at(rule, "selector");
  const pairs = isObject(selector) ? Object.entries(selector) : [];
  return {
    selector: new Map(pairs.map(([key, value]) => [key, typeof value === "string" ? value : ""])),
    groups: listed(at(rule, "groups")),
    users: listed(at(rule, "users")),
    maxProjects: integer(at(rule, "maxProjects")),
  };
}

function listed(value: Json | undefined): ReadonlySet<string> | undefined {
  return Array.isArray(value) ? new Set(strings(value)) : undefined;
}

function strings(value: Json | undefined): string[] {
  return Array.isArray(value) ? value.filter((one) => typeof one === "string") : [];
}

function integer(value: Json | undefined): number | undefined {
  return typeof value === "number" && Number.isInteger(value) ? value : undefined;
}

/** Whether keys and values of selectors are label keys and values. The path is the selector's, as upstream's is. */
function checkSelectors(spec: JsonObject): Problem[] {
  return listAt(spec, "limits").flatMap((rule, i) => {
    const selector = at(rule, "selector");
    if (!isObject(selector)) return [];
    const wrong = Object.entries(selector).flatMap(([key, value]) => [
      checkLabelKey(key),
      typeof value === "string" ? checkLabelValue(value) : undefined,
    ]);
    return wrong.flatMap((text) =>
      text === undefined ? [] : [problem(["spec", "limits", i, "selector"], text)],
    );
  });
}
