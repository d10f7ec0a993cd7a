import type { JsonObject } from "../../core/json.ts";
import type { Module } from "../../core/module/module.ts";
import { anchor } from "../../core/registration/anchor.ts";
import { OWN_NAMES } from "../../core/registration/names.ts";
import type { Objects } from "../install/apply.ts";
import { isOurs, isWrittenByUsher, ownerOf } from "../install/ownership-conflict.ts";
import { planManaged, type Removal } from "./uninstall-plan.ts";

const WEBHOOKS: readonly JsonObject[] = ["Mutating", "Validating"].map((phase) => ({
  apiVersion: "admissionregistration.k8s.io/v1",
  kind: `${phase}WebhookConfiguration`,
  metadata: { name: OWN_NAMES.webhooks },
}));

/**
 * What to delete so that no request waits for usher, and nothing else, in its order: the anchor, without which replicas that still run
 * register nothing; what modules manage; the webhooks. The rest is left to the tool that manages the installation.
 */
export async function planWebhookRemoval(objects: Objects, modules: readonly Module[]): Promise<Removal[]> {
  const removals: Removal[] = [];
  const own = await objects.read(anchor());
  if (own !== undefined) removals.push(removal(own, isOurs(own)));
  removals.push(...(await planManaged(objects, modules)));
  for (const webhook of WEBHOOKS) {
    const live = await objects.read(webhook);
    if (live !== undefined) removals.push(removal(live, isWrittenByUsher(live)));
  }
  return removals;
}

function removal(live: JsonObject, ours: boolean): Removal {
  return ours ? { live, change: "delete" } : { live, change: "stays", note: `belongs to ${ownerOf(live)}` };
}
