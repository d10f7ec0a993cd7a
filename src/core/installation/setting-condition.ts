import { at, type JsonObject, listAt } from "../json.ts";
import type { Gate, Gates } from "./gates.ts";
import type { Installation } from "./installation.ts";

/** A setting of the configuration has this value. Plain data: registration evaluates it, and a chart renders it as a template. */
export interface ValueCondition {
  /** Path in the spec of UsherConfiguration. */
  readonly setting: readonly string[];
  readonly equals: string | boolean;
  /** The default of an absent setting. */
  readonly default: string | boolean;
}

/** The condition's resource is in this list of the configuration. An absent list contains all. */
export interface ListedCondition {
  readonly listed: readonly string[];
}

export type SettingCondition = ValueCondition | ListedCondition;

/** The spec of UsherConfiguration, as far as conditions need it. */
type ConfiguredValues = JsonObject;

export function configuredValues(installation: Installation, gates: Gates): ConfiguredValues {
  const { manageCrds, manageWebhooks, certificates, settings, watchdog } = installation;
  const { controlPlaneNodes, networkPolicy, previewPolicies } = installation;
  return {
    ...(controlPlaneNodes === undefined ? {} : { controlPlaneNodes }),
    ...(networkPolicy === undefined ? {} : { networkPolicy: { enabled: networkPolicy.enabled } }),
    ...(watchdog === undefined ? {} : { watchdog: { enabled: watchdog.enabled } }),
    ...(manageCrds === undefined ? {} : { manageCrds }),
    ...(manageWebhooks === undefined ? {} : { manageWebhooks }),
    ...(previewPolicies === undefined ? {} : { previewPolicies }),
    ...(certificates === undefined ? {} : { certificates: certificates.mode }),
    modules: { ...settings },
    featureGates: gates.state,
  };
}

/** Whether all of them hold. @param resource The resource of a `listed` condition: `deployments.apps` */
export function holds(
  conditions: readonly SettingCondition[] = [],
  values: ConfiguredValues,
  resource = "",
): boolean {
  return conditions.every((one) => {
    if ("listed" in one)
      return at(values, ...one.listed) === undefined || listAt(values, ...one.listed).includes(resource);
    return (at(values, ...one.setting) ?? one.default) === one.equals;
  });
}

/** Whether a module is on. */
export function moduleEnabled(module: string): ValueCondition {
  return { setting: ["modules", module, "enabled"], equals: true, default: true };
}

export function gateEnabled(gate: Gate): ValueCondition {
  return { setting: ["featureGates", gate.name], equals: true, default: gate.default };
}

/** A setting of a module, from the values of its module. */
export function moduleSetting(
  module: string,
  path: readonly string[],
  equals: string | boolean,
  otherwise: string | boolean,
): ValueCondition {
  return { setting: ["modules", module, ...path], equals, default: otherwise };
}

export const MANAGES_CRDS: ValueCondition = { setting: ["manageCrds"], equals: true, default: true };
export const MANAGES_WEBHOOKS: ValueCondition = { setting: ["manageWebhooks"], equals: true, default: true };
export const PREVIEWS_POLICIES: ValueCondition = {
  setting: ["previewPolicies"],
  equals: true,
  default: true,
};
/**
 * The watchdog runs only if usher writes the webhook configurations: otherwise no annotation marks the entries that may
 * be opened.
 */
export const RUNS_WATCHDOG: readonly ValueCondition[] = [
  MANAGES_WEBHOOKS,
  { setting: ["watchdog", "enabled"], equals: true, default: true },
];
export const OWN_CERTIFICATES: ValueCondition = { setting: ["certificates"], equals: "Own", default: "Own" };
/** Settings that decide objects, and no right. */
export const CONTROL_PLANE_NODES: ValueCondition = {
  setting: ["controlPlaneNodes"],
  equals: true,
  default: false,
};
export const HAS_NETWORK_POLICY: ValueCondition = {
  setting: ["networkPolicy", "enabled"],
  equals: true,
  default: false,
};
