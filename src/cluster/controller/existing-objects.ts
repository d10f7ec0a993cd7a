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
