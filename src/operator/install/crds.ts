import { type JsonObject, stringAt } from "../../core/json.ts";
import { describeObject, type Objects, sameObject } from "./apply.ts";
import { establish } from "./install.ts";
import { isNewer, isOurs, ownerOf, versionOf } from "./ownership-conflict.ts";

/** The action for a CRD when only CRDs are installed. */
interface PlannedCrd {
  readonly object: JsonObject;
  readonly live?: JsonObject;
  readonly change: "create" | "update" | "unchanged" | "stays";
  /** For users: why it stays. */
  readonly note?: string;
}

/**
 * The plan of an install of only the CRDs. None is downgraded, because fields that only the newer one has would be lost
 * from policies, and none is taken from another owner. Neither is an error: a rollback keeps newer CRDs, and usher
 * works with them.
 */
export async function planCrds(
  objects: Objects,
  wanted: readonly JsonObject[],
  version: string,
): Promise<PlannedCrd[]> {
  const planned: PlannedCrd[] = [];
  for (const object of wanted) {
    const live = await objects.read(object);
    if (live === undefined) planned.push({ object, change: "create" });
    else if (!isOurs(live))
      planned.push({ object, live, change: "stays", note: `belongs to ${ownerOf(live)}` });
    else if (isNewer(live, version))
      planned.push({ object, live, change: "stays", note: `written by usher ${versionOf(live)}` });
    else {
      const after = await objects.apply(object, undefined, { dryRun: true });
      planned.push({ object, live, change: sameObject(live, after) ? "unchanged" : "update" });
    }
  }
  return planned;
}

/** Executes the plan, and waits until each kind is served. */
export async function applyCrds(objects: Objects, planned: readonly PlannedCrd[]): Promise<void> {
  for (const { object, change } of planned) {
    if (change === "stays" || change === "unchanged") continue;
    await objects.apply(object);
    await establish(objects, object);
  }
}

/** `CustomResourceDefinition x: update`, for a table. */
export function crdRow({ object, change, note }: PlannedCrd): string[] {
  return [describeObject(object), change, note ?? ""];
}

export function isCrd(object: JsonObject): boolean {
  return stringAt(object, "kind") === "CustomResourceDefinition";
}
