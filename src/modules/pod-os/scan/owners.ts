import type { JsonObject } from "../../../core/json.ts";
import { controllerOf, groupVersionOf } from "../../../core/kubernetes/object.ts";
import type { WorkloadTable } from "../../../core/kubernetes/workloads.ts";

/** An object among the scanned ones. */
export interface Identity {
  readonly group: string;
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
}

export function identityKey({ group, kind, namespace, name }: Identity): string {
  return [group, kind, namespace, name].join("/");
}

/** The controller of an object, if it is of a kind that creates pods. */
export function knownOwner(
  object: JsonObject,
  namespace: string,
  table: WorkloadTable,
): Identity | undefined {
  const controller = controllerOf(object);
  if (controller === undefined) return undefined;
  const { group } = groupVersionOf(controller.apiVersion);
  const { kind, name } = controller;
  return table.byKind(group, kind) === undefined ? undefined : { group, kind, namespace, name };
}

/** The topmost owner through known owners; the object itself if it has none. Stops at cycles. */
export function topmostOwner(start: Identity, ownerOf: (object: Identity) => Identity | undefined): Identity {
  const seen = new Set<string>();
  let top = start;
  for (let next = ownerOf(top); next !== undefined && !seen.has(identityKey(next)); next = ownerOf(top)) {
    seen.add(identityKey(top));
    if (seen.has(identityKey(next))) return top;
    top = next;
  }
  return top;
}
