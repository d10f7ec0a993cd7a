import type { PolicyRef } from "../../core/evaluate/finding.ts";
import { resourceName } from "../../core/evaluate/request.ts";
import { nameOf, namespaceOf } from "../../core/kubernetes/object.ts";
import type { Module } from "../../core/module/module.ts";
import { kindResource } from "../../core/policy/kind.ts";
import type { Change, View } from "../../core/view/view.ts";

/** Every object of the view that a module has declared, as if it had just been created. */
export function* existingObjects(modules: readonly Module[], view: View): Iterable<Change> {
  const resources = new Set<string>();
  for (const { kinds, reads } of modules) {
    for (const kind of kinds) resources.add(kindResource(kind));
    for (const read of reads) resources.add(resourceName(read));
  }
  for (const resource of resources)
    for (const object of view.list(resource))
      yield { resource, namespace: namespaceOf(object), name: nameOf(object), object };
}

/** A policy as it stands in the view. */
export function existingPolicy(
  modules: readonly Module[],
  module: string,
  policy: PolicyRef,
  view: View,
): Change | undefined {
  const kinds = modules.find(({ name }) => name === module)?.kinds ?? [];
  const kind = kinds.find((one) => one.kind === policy.kind);
  if (kind === undefined) return undefined;
  const { namespace = "", name } = policy;
  const resource = kindResource(kind);
  const object = view.get(resource, namespace, name);
  return object === undefined ? undefined : { resource, namespace, name, object };
}
