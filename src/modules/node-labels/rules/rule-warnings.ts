import { at, isObject, type JsonObject, listAt, stringAt } from "../../../core/json.ts";
import type { Installation } from "../../../core/module/installation.ts";
import { type Problem, warningProblem } from "../../../core/policy/problem.ts";
import { inertBecause, settingsOf } from "../settings.ts";
import { admittedAtRegistration, isRole, partsOf } from "./label-keys.ts";

/** A policy may be right in itself and have no effect where it is written. It is let in all the same: a manifest must not fail for that. */
export function inertHere(object: JsonObject, installation: Installation | undefined): Problem[] {
  const namespace = stringAt(object, "metadata", "namespace");
  if (installation === undefined || namespace === undefined) return [];
  const why = inertBecause(namespace, settingsOf(installation));
  return why === undefined ? [] : [warningProblem(["metadata", "namespace"], `it has no effect: ${why}`)];
}

/** What is allowed in a rule and may still not be what its author expects. */
export function ruleWarnings(spec: JsonObject): Problem[] {
  const doubts: Problem[] = [];
  const patterns = listAt(spec, "nodeNamePatterns");
  const selects = isObject(at(spec, "nodeSelector"));
  if (patterns.length === 0 && !selects)
    doubts.push(warningProblem(["spec", "nodeNamePatterns"], "is empty, so this rule means no node"));
  for (const [i, pattern] of patterns.entries())
    if (pattern === "")
      doubts.push(warningProblem(["spec", "nodeNamePatterns", i], "is empty and fits no name"));
  const labels = at(spec, "labels");
  const keys = isObject(labels) ? Object.keys(labels) : [];
  for (const key of keys) {
    const path = ["spec", "labels", key];
    if (partsOf(key).domain === undefined)
      doubts.push(
        warningProblem(
          path,
          "has no domain: only an OwnedLabels with a namePattern and no domain can own it",
          "write it as domain/name",
        ),
      );
    if (!admittedAtRegistration(key, false))
      doubts.push(
        warningProblem(
          path,
          "can't be there from birth on a node that registers itself: it follows at once, behind the startup taint (USHER-L02)",
        ),
      );
  }
  return [...doubts, ...selfGranted(spec, keys)];
}

/**
 * A kubelet may set most labels of its own node. A rule that gives a role, or takes a taint's protection for granted, by such a label
 * lets any node that somebody took over give itself that role.
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
        `${key} is a label that a kubelet may set itself, so any node could give itself ${granted.join(", ")}`,
        "select by a label in node-restriction.kubernetes.io, or by name as well",
      ),
    );
}
