import { type Json, type JsonObject, listAt, stringAt } from "../json.ts";

/** A pod with this spec waits at a scheduling gate. */
export function isGatedSpec(podSpec: Json | undefined): boolean {
  return listAt(podSpec, "schedulingGates").length > 0;
}

/** A pod with this spec has a node. */
export function isBoundSpec(podSpec: Json | undefined): boolean {
  return (stringAt(podSpec, "nodeName") ?? "") !== "";
}

export function isBound(pod: JsonObject): boolean {
  return isBoundSpec(pod["spec"]);
}

/** The spec of a pod as it would be before the pod had a node. */
export function unboundSpec({ nodeName: _node, ...podSpec }: JsonObject): JsonObject {
  return podSpec;
}

/** A pod whose containers have all ended, and will not start again. */
export function hasEnded(pod: JsonObject): boolean {
  const phase = stringAt(pod, "status", "phase");
  return phase === "Succeeded" || phase === "Failed";
}

/** A pod or Job that has ended: its placement no longer matters. */
export function isFinished(object: JsonObject): boolean {
  if (hasEnded(object)) return true;
  return listAt(object, "status", "conditions").some(
    (one) => /^(?:Complete|Failed)$/.test(stringAt(one, "type") ?? "") && stringAt(one, "status") === "True",
  );
}

/** As CEL expressions. `object` is the name of the variable. */
export function isBoundExpression(object: string): string {
  return `(has(${object}.spec.nodeName) && ${object}.spec.nodeName != '')`;
}

export function isGatedExpression(object: string): string {
  return `(has(${object}.spec.schedulingGates) && size(${object}.spec.schedulingGates) > 0)`;
}

/** Selects pods without a node in a LIST. */
export const UNBOUND_PODS = "spec.nodeName=";
