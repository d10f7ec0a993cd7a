import { type JsonObject, stringAt } from "../../core/json.ts";
import type { Objects } from "../install/apply.ts";
import { isWebhookConfiguration } from "../install/install-plan.ts";
import { podsGone } from "./pods-gone.ts";
import type { Removal } from "./uninstall-plan.ts";

export async function carryOutRemovals(
  objects: Objects,
  removals: readonly Removal[],
  done: (one: Removal) => void,
): Promise<void> {
  const hooks: JsonObject[] = [];
  try {
    for (const removal of removals) {
      const { live, change } = removal;
      if (change === "delete") {
        await objects.remove(live);
        if (isWebhookConfiguration(live)) hooks.push(live);
        if (stringAt(live, "kind") === "Deployment") {
          await goneAgain(objects, hooks);
          // Replicas that still run would make their Secret and their tallies anew.
          await podsGone(objects, live);
          await goneAgain(objects, hooks);
        }
      }
      done(removal);
    }
  } catch (error) {
    // However it ended: nothing in the cluster may be left waiting for what is half gone. Why it ended is told, not this.
    await goneAgain(objects, hooks).catch(() => undefined);
    throw error;
  }
  await goneAgain(objects, hooks);
}

/** A replica may have registered itself once more, just before it lost the right to. */
async function goneAgain(objects: Objects, hooks: readonly JsonObject[]): Promise<void> {
  for (const hook of hooks) {
    const again = await objects.read(hook);
    if (again !== undefined) await objects.remove(again);
  }
}
