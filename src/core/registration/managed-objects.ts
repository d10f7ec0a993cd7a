import { configuredValues, holds } from "../installation/setting-condition.ts";
import type { JsonObject } from "../json.ts";
import type { Declarations, ManagedResource } from "../module/module.ts";
import type { View } from "../view/view.ts";
import { labelled, OWN_LABELS, OWN_NAMES } from "./names.ts";

/** The module of an object, so that it is found when the module no longer declares it. */
export const MODULE_LABEL = "usher.dev/module";

/** The objects that a module declares now, as they are applied. */
export interface ManagedSet {
  readonly module: string;
  readonly resources: readonly ManagedResource[];
  readonly desired: readonly JsonObject[];
}

/** The objects of all modules, for the current view. */
export function managedSets(
  { modules, installation, gates }: Declarations,
  view: View,
  now: number,
  version?: string,
): ManagedSet[] {
  const values = configuredValues(installation, gates);
  return modules.flatMap(({ name, managed }) => {
    if (managed === undefined || !holds(managed.when, values)) return [];
    const desired = managed.desired(view, installation, gates, now);
    return [
      {
        module: name,
        resources: managed.resources,
        desired: desired.map((object) => labelled(object, version, { [MODULE_LABEL]: name })),
      },
    ];
  });
}

/** Whether a module has policies of the API server that stand in for its webhooks. */
export function hasStandby({ modules, installation, gates }: Declarations): boolean {
  const values = configuredValues(installation, gates);
  return modules.some(({ managed }) => managed?.standby === true && holds(managed.when, values));
}

/** The labels of every object of a module. */
export function managedLabels(module: string): Record<string, string> {
  return {
    "app.kubernetes.io/managed-by": OWN_LABELS["app.kubernetes.io/managed-by"],
    [MODULE_LABEL]: module,
  };
}

/**
 * A ClusterRole without rules and bindings that represents the installation. It owns the objects that usher writes at run time. Every
 * means of removal deletes it with the other objects, and then the garbage collector deletes the webhooks, with or without a live replica.
 * It is a ClusterRole because every cluster serves that kind, cluster-scoped. Without `rules`: the API server stores an empty list as null,
 * and tools that compare would see a difference.
 */
export function anchor(): JsonObject {
  return {
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "ClusterRole",
    metadata: { name: OWN_NAMES.anchor },
  };
}
