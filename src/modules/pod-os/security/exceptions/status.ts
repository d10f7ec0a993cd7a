import { z } from "zod";
import { at, type JsonObject, listAt, stringAt } from "../../../../core/json.ts";
import {
  conditionOf,
  conditions,
  type ObservedCondition,
  observed,
  timeOf,
  validity,
} from "../../../../core/policy/condition.ts";
import { idle, PROBLEM, type Problem } from "../../../../core/policy/problem.ts";
import type { View } from "../../../../core/view/view.ts";

export const exceptionStatus = z.strictObject({
  observedGeneration: z.int().optional().describe("The generation that was last reconciled."),
  conditions: conditions("Valid: whether all of the exception is valid. Active: whether it counts now."),
});

/** Namespaces of an exception that do not exist. Empty if namespaces are unknown. */
function missingOf(object: JsonObject, view: View): string[] {
  if (!view.served("namespaces")) return [];
  const names = listAt(object, "spec", "namespaces").filter((name) => typeof name === "string");
  return names.filter((name) => view.get("namespaces", "", name) === undefined);
}

/** An exception may be written before its namespace, so it stays a warning. */
export function missingNamespaces(object: JsonObject, view: View): Problem[] {
  const missing = missingOf(object, view);
  return missing.length === 0
    ? []
    : [idle(PROBLEM.matchesNothing, ["spec", "namespaces"], `no such namespace: ${missing.join(", ")}`)];
}

/** The status of an exception, and when it changes by itself. `before` is the current one: unchanged conditions keep their time. */
export function statusOfException(
  object: JsonObject,
  problems: readonly Problem[],
  view: View,
  before: JsonObject,
  now: number,
): { readonly status: JsonObject; readonly changesAt: number | undefined } {
  const written = at(object, "metadata", "generation");
  const generation = typeof written === "number" ? written : undefined;
  const expires = Date.parse(stringAt(object, "spec", "expires") ?? "");
  const observations = [validity(problems, "in use"), activity(object, expires, view, now)];
  const status = {
    ...observed(generation),
    conditions: observations.map((one) => conditionOf(one, generation, before, now)),
  };
  return { status, changesAt: now < expires ? expires : undefined };
}

function activity(object: JsonObject, expires: number, view: View, now: number): ObservedCondition {
  const type = "Active";
  // Also false for a date that can't be read.
  if (!(now < expires))
    return {
      type,
      holds: false,
      reason: "Expired",
      message: `ended at ${stringAt(object, "spec", "expires")}`,
    };
  const missing = missingOf(object, view);
  if (missing.length > 0 && missing.length === listAt(object, "spec", "namespaces").length)
    return { type, holds: false, reason: "NoNamespace", message: `no such namespace: ${missing.join(", ")}` };
  return { type, holds: true, reason: "InForce", message: `counts until ${timeOf(expires)}` };
}
