import { refOf } from "../../../core/evaluate/assembly.ts";
import { need } from "../../../core/evaluate/decision.ts";
import { policyKey } from "../../../core/evaluate/finding.ts";
import { failureOf, type Need } from "../../../core/evaluate/need.ts";
import { at, equal, isObject, type JsonObject, stringAt } from "../../../core/json.ts";
import type { ReconcileContext, ReconcileResult, Reconciler } from "../../../core/module/reconciler.ts";
import { checkObject } from "../../../core/policy/check.ts";
import { type Kind, kindResource } from "../../../core/policy/kind.ts";
import type { View } from "../../../core/view/view.ts";
import { effectOf } from "./effect.ts";
import { statusOf } from "./status.ts";

const NOTHING: ReconcileResult = { writes: [] };

/** Keeps the status of policies: what they came to, and what is wrong with them. */
export function statusReconciler(
  name: string,
  kinds: readonly Kind[],
  workloads: (view: View, policy: string) => JsonObject | undefined = () => undefined,
): Reconciler {
  const byResource = new Map(kinds.map((kind) => [kindResource(kind), kind]));
  return {
    keys: ({ resource, namespace, name: policy, object }) =>
      object !== undefined && byResource.has(resource) ? [`${resource} ${namespace}/${policy}`] : [],
    plan: (key, context) => {
      const [, resource = "", namespace = "", policy = ""] = /^(\S+) (.*)\/(.*)$/.exec(key) ?? [];
      const kind = byResource.get(resource);
      if (kind === undefined) return NOTHING;
      const of = { resource, ...(namespace === "" ? {} : { namespace }), name: policy };
      // The view keeps no status and no version: both change without meaning anything to an admission.
      const live: Need = { get: of, live: true };
      const fact = context.facts.of(live);
      if (fact === undefined) return need(live);
      const failure = failureOf(fact);
      if (failure !== undefined) throw new Error(failure);
      if (!("found" in fact) || !isObject(fact.found)) return NOTHING;
      const found = workloads(context.view, policyKey(refOf(kind, fact.found)));
      return planStatus(name, kind, fact.found, of, context, found);
    },
  };
}

function planStatus(
  module: string,
  kind: Kind,
  object: JsonObject,
  of: { readonly resource: string; readonly namespace?: string; readonly name: string },
  { view, now, tallies }: ReconcileContext,
  workloads: JsonObject | undefined,
): ReconcileResult {
  const ref = refOf(kind, object);
  const generation = at(object, "metadata", "generation");
  const before = isObject(object["status"]) ? object["status"] : {};
  const problems = checkObject(kind, object, view);
  const known = {
    generation: typeof generation === "number" ? generation : undefined,
    problems,
    effect: effectOf(kind, object, problems, view),
  };
  const status = statusOf(known, tallies?.of(module, ref), before, now, workloads);
  if (equal(status, before)) return NOTHING;
  const resourceVersion = stringAt(object, "metadata", "resourceVersion") ?? "";
  return { writes: [{ status, of, resourceVersion }] };
}
