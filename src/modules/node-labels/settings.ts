import { z } from "zod";
import type { Installation } from "../../core/installation/installation.ts";
import { at, stringAt } from "../../core/json.ts";
import { checkLabelKey } from "../../core/kubernetes/names.ts";
import type { View } from "../../core/view/view.ts";

/** The name of this module in configurations, findings and metrics. */
export const MODULE = "node-labels";

/** Long enough for a GitOps tool to apply the rules that belong to an OwnedLabels. */
const GRACE_SECONDS = 60;

const STARTUP_TAINT = "usher.dev/starting";

/** Served by OpenShift's API server and by no other. */
export const OPENSHIFT_RESOURCE = "clusterversions.config.openshift.io";

/** The settings of this module in the configuration. */
export const settingsSchema = z.strictObject({
  namespace: z.string().min(1).max(63).optional(),
  startupTaint: z
    .string()
    .refine((key) => checkLabelKey(key) === undefined, { error: "must be a taint key" })
    .optional(),
  gracePeriodSeconds: z.int().min(0).max(86_400).optional(),
  openshift: z.boolean().optional(),
});

export interface NodeLabelsSettings {
  /** The only namespace whose objects apply; `undefined`: those of all namespaces. */
  readonly namespace: string | undefined;
  readonly startupTaint: string;
  readonly graceMs: number;
  /** Whether NodeRestriction is OpenShift's; `undefined`: detected. */
  readonly openshift: boolean | undefined;
}

export function settingsOf(installation: Installation): NodeLabelsSettings {
  const configured = installation.settings?.[MODULE];
  const grace = at(configured, "gracePeriodSeconds");
  const openshift = at(configured, "openshift");
  return {
    namespace: stringAt(configured, "namespace"),
    startupTaint: stringAt(configured, "startupTaint") ?? STARTUP_TAINT,
    graceMs: (typeof grace === "number" ? grace : GRACE_SECONDS) * 1_000,
    openshift: typeof openshift === "boolean" ? openshift : undefined,
  };
}

/** Why objects of this namespace have no effect. */
export function inertBecause(namespace: string, settings: NodeLabelsSettings): string | undefined {
  return settings.namespace === undefined || settings.namespace === namespace
    ? undefined
    : `usher's configuration restricts node-labels to namespace ${settings.namespace}`;
}

export function isOpenshift(settings: NodeLabelsSettings, view: View): boolean {
  return settings.openshift ?? view.served(OPENSHIFT_RESOURCE);
}
