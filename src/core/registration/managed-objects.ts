import type { JsonObject } from "../json.ts";
import type { Declarations, ManagedResource } from "../module/module.ts";
import { configuredValues, holds } from "../module/setting-condition.ts";
import type { View } from "../view/view.ts";
import { labelled, OWN_LABELS } from "./names.ts";

/** Which module an object follows from, so that it is found when the module no longer wants it. */
export const MODULE_LABEL = "usher.dev/module";

/** The objects that a module wants now, as they are applied. */
export interface ManagedSet {
  readonly module: string;
  readonly resources: readonly ManagedResource[];
  readonly desired: readonly JsonObject[];
}

/** What all modules want, from the view of the moment. */
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

/** The labels of every object of a module. */
export function managedLabels(module: string): Record<string, string> {
  return {
    "app.kubernetes.io/managed-by": OWN_LABELS["app.kubernetes.io/managed-by"],
    [MODULE_LABEL]: module,
  };
}
