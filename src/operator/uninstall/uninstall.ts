import { type JsonObject, stringAt } from "../../core/json.ts";
import { MODULE_LABEL } from "../../core/registration/managed-objects.ts";
import type { Objects } from "../install/apply.ts";
import { isReplicas } from "../install/install.ts";
import { isWebhookConfiguration } from "../install/install-plan.ts";
import { podsGone } from "./pods-gone.ts";
import type { Removal } from "./uninstall-plan.ts";

export async function carryOutRemovals(
  objects: Objects,
  removals: readonly Removal[],
  done: (one: Removal) => void,
): Promise<void> {
  const recreatable: JsonObject[] = [];
  try {
    for (const removal of removals) {
      const { live, change } = removal;
      if (change === "delete") {
        await objects.remove(live);
        if (isRecreatable(live)) recreatable.push(live);
        if (isReplicas(live)) {
          await removeAgain(objects, recreatable);
          // Replicas that still run would create their Secret and their tallies again.
          await podsGone(objects, live);
          await removeAgain(objects, recreatable);
        }
      }
      done(removal);
    }
  } catch (error) {
    // Whatever failed, no request may wait for a partly removed usher. The first error is reported.
    await removeAgain(objects, recreatable).catch(() => undefined);
    throw error;
  }
  await removeAgain(objects, recreatable);
}

/** Webhooks and managed objects: a running leader creates them again, until it has lost the right to. */
function isRecreatable(live: JsonObject): boolean {
  return isWebhookConfiguration(live) || stringAt(live, "metadata", "labels", MODULE_LABEL) !== undefined;
}

/** A replica may have created them again just before it lost the right to. */
async function removeAgain(objects: Objects, recreatable: readonly JsonObject[]): Promise<void> {
  for (const one of recreatable) {
    const again = await objects.read(one);
    if (again !== undefined) await objects.remove(again);
  }
}
