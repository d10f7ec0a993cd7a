import type { Installation } from "../../../core/installation/installation.ts";
import { at, isObject, type Json, type JsonObject, listAt, stringAt } from "../../../core/json.ts";
import { admittedAtRegistration, isRole, partsOf } from "../../../core/kubernetes/node-label-keys.ts";
import { idle, PROBLEM, type Problem, warningProblem } from "../../../core/policy/problem.ts";
import { inertBecause, settingsOf } from "../settings.ts";

/** A valid policy may have no effect in its namespace. It is still admitted: a manifest must not fail for that. */
export function inertHere(object: JsonObject, installation: Installation | undefined): Problem[] {
  const namespace = stringAt(object, "metadata", "namespace");
  if (installation === undefined || namespace === undefined) return [];
  const why = inertBecause(namespace, settingsOf(installation));
  return why === undefined
    ? []
    : [idle(PROBLEM.noEffect, ["metadata", "namespace"], `has no effect: ${why}`)];
}

/** Valid fields of a rule that may not have the effect that its author expects. */
export function ruleWarnings(spec: JsonObject): Problem[] {
  const warnings: Problem[] = [];
  const patterns = listAt(spec, "nodeNamePatterns");
  const selects = isObject(at(spec, "nodeSelector"));
  if (patterns.length === 0 && !selects)
    warnings.push(
      idle(PROBLEM.matchesNothing, ["spec", "nodeNamePatterns"], "is empty, so the rule matches no node"),
    );
  for (const [i, pattern] of patterns.entries())
    if (pattern === "")
      warnings.push(
        idle(PROBLEM.matchesNothing, ["spec", "nodeNamePatterns", i], "is empty and matches no name"),
      );
  if (["labels", "annotations", "taints"].every((field) => isEmpty(at(spec, field))))
    warnings.push(
      idle(PROBLEM.noEffect, ["spec"], "sets nothing: the rule has no labels, annotations or taints"),
    );
  const labels = at(spec, "labels");
  const keys = isObject(labels) ? Object.keys(labels) : [];
  for (const key of keys) {
    const path = ["spec", "labels", key];
    if (partsOf(key).domain === undefined)
      warnings.push(
        warningProblem(
          path,
          "has no domain: only an OwnedLabels with a namePattern and no domain can own it",
          "write it as domain/name",
        ),
      );
    if (!admittedAtRegistration(key, false))
      warnings.push(
        warningProblem(
          path,
          "can't be set while a node registers itself: it is set right after, under the startup taint (USHER-L02)",
        ),
      );
  }
  return [...warnings, ...selfGranted(spec, keys)];
}

function isEmpty(value: Json | undefined): boolean {
  return value === undefined || value === null || Object.keys(value).length === 0;
}

/**
 * A kubelet may set most labels of its own node. A rule that grants a role by such a label lets any compromised node grant itself that
 * role.
 */
function selfGranted(spec: JsonObject, keys: readonly string[]): Problem[] {
  const granted = keys.filter((key) => isRole(key) || !admittedAtRegistration(key, false));
  if (granted.length === 0 || listAt(spec, "nodeNamePatterns").length > 0) return [];
  const matchLabels = at(spec, "nodeSelector", "matchLabels");
  const named = [
    ...(isObject(matchLabels) ? Object.keys(matchLabels) : []),
    ...listAt(spec, "nodeSelector", "matchExpressions").flatMap((one) => stringAt(one, "key") ?? []),
  ];
  return named
    .filter((key) => admittedAtRegistration(key, false))
    .map((key) =>
      warningProblem(
        ["spec", "nodeSelector"],
        `${key} can be set by the kubelet itself, so any node could grant itself ${granted.join(", ")}`,
        "select by a label in node-restriction.kubernetes.io, or by name as well",
      ),
    );
}
