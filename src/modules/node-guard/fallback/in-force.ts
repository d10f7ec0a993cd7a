import type { Installation } from "../../../core/installation/installation.ts";
import { equal, type JsonObject, stringAt } from "../../../core/json.ts";
import { withoutPolicyDefaults } from "../../../core/kubernetes/admission-policy.ts";
import { nameOf } from "../../../core/kubernetes/object.ts";
import type { Read } from "../../../core/module/module.ts";
import type { View } from "../../../core/view/view.ts";
import type { Group } from "../groups/group.ts";
import { readOverride } from "../groups/override.ts";
import { OVERRIDES } from "../groups/policy.ts";
import { GATE_ON, keepsFallback } from "../settings.ts";
import { compileGroup, fallback } from "./compile.ts";

/** The existing objects of the fallback. */
export const FALLBACK_READS: readonly Read[] = fallback.resources.map((resource) => ({
  ...resource,
  keep: [["spec"]],
  labelSelector: "usher.dev/module=node-guard",
  optional: true,
  when: [GATE_ON],
  why: "know whether the fallback is in force",
}));

/**
 * Whether the fallback of a group refuses now what the group refuses: all its objects exist as desired. Only then may
 * the webhook be fail-open. An additional field, such as `excludeResourceRules`, may exempt anything, so it counts
 * unless the API server defaults it. Under an override its bindings only audit.
 */
export function fallbackInForce(group: Group, view: View, installation: Installation): boolean {
  // For a group with permissions in RBAC it covers only the labels.
  if (!keepsFallback(installation) || group.rbac) return false;
  const overrides = [...view.list(OVERRIDES)].some((one) => readOverride(one)?.group === group.name);
  const actions = overrides ? (["Deny", "Audit"] as const) : (["Deny"] as const);
  return actions.some((action) => isStored(compileGroup(group, installation, action), view));
}

/**
 * Why a node that joins a group while usher does not answer is not guarded: a fail-closed webhook names the known
 * nodes, and the group has no fallback, which selects nodes by their labels. `undefined` if the group has one, or
 * refuses nothing.
 */
export function withoutFallback(group: Group, installation: Installation): string | undefined {
  if (group.effectiveMode !== "Enable") return undefined;
  if (group.rbac) return "its rights are in RBAC, which the fallback does not judge";
  return keepsFallback(installation) ? undefined : "spec.modules.node-guard.fallback is off";
}

function isStored(wanted: readonly JsonObject[], view: View): boolean {
  return (
    wanted.length > 0 &&
    wanted.every((object) => {
      const stored = view.get(RESOURCES[stringAt(object, "kind") ?? ""] ?? "", "", nameOf(object));
      return stored !== undefined && equal(plainSpec(stored), plainSpec(object));
    })
  );
}

const plainSpec = ({ spec = null }: JsonObject) => withoutPolicyDefaults(spec);

const RESOURCES: Readonly<Record<string, string>> = Object.fromEntries(
  fallback.resources.map(({ kind, resource, group }) => [kind, `${resource}.${group}`]),
);
