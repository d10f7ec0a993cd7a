import { isObject, type Json, type JsonObject, own, stringAt } from "../../../core/json.ts";
import { nameOf } from "../../../core/kubernetes/object.ts";
import type { Installation } from "../../../core/module/installation.ts";
import type { Read } from "../../../core/module/module.ts";
import type { View } from "../../../core/view/view.ts";
import type { Group } from "../groups/group.ts";
import { readOverride } from "../overrides/override.ts";
import { OVERRIDES } from "../policy/read-policy.ts";
import { GATE_ON, keepsFallback } from "../settings.ts";
import { compileGroup, fallback } from "./compile.ts";

/** What is there of the fallback. */
export const FALLBACK_READS: readonly Read[] = fallback.resources.map((resource) => ({
  ...resource,
  keep: [["spec"]],
  labelSelector: "usher.dev/module=node-guard",
  optional: true,
  when: [GATE_ON],
  why: "know whether the fallback is in force",
}));

/**
 * Whether the fallback of a group refuses now what the group refuses: all its objects are there as they should be. Only then may the
 * webhook be open. Fields that the API server defaults do not count. Under an override its bindings only audit.
 */
export function fallbackInForce(group: Group, view: View, installation: Installation): boolean {
  if (!keepsFallback(installation)) return false;
  const overrides = [...view.list(OVERRIDES)].some((one) => readOverride(one)?.group === group.name);
  const actions = overrides ? (["Deny", "Audit"] as const) : (["Deny"] as const);
  return actions.some((action) => isStored(compileGroup(group, installation, action), view));
}

function isStored(wanted: readonly JsonObject[], view: View): boolean {
  return (
    wanted.length > 0 &&
    wanted.every((object) => {
      const stored = view.get(RESOURCES[stringAt(object, "kind") ?? ""] ?? "", "", nameOf(object));
      return stored !== undefined && contains(stored["spec"], object["spec"]);
    })
  );
}

const RESOURCES: Readonly<Record<string, string>> = Object.fromEntries(
  fallback.resources.map(({ kind, resource, group }) => [kind, `${resource}.${group}`]),
);

/** Whether all that is wanted is there; lists must be equal item by item. */
function contains(stored: Json | undefined, wanted: Json | undefined): boolean {
  if (Array.isArray(wanted))
    return (
      Array.isArray(stored) &&
      stored.length === wanted.length &&
      wanted.every((item, i) => contains(stored[i], item))
    );
  if (!isObject(wanted)) return stored === wanted;
  return Object.keys(wanted as JsonObject).every((key) => contains(own(stored, key), own(wanted, key)));
}
