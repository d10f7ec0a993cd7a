import { z } from "zod";
import { at, stringAt } from "../../core/json.ts";
import { checkLabelKey } from "../../core/kubernetes/names.ts";
import type { Installation } from "../../core/module/installation.ts";
import type { View } from "../../core/view/view.ts";

/** The name under which configurations and findings know this module. */
export const MODULE = "node-labels";

/** Long enough for a GitOps tool to bring the rules that belong to an OwnedLabels. */
const GRACE_SECONDS = 60;

const STARTUP_TAINT = "usher.dev/starting";

/** Served by OpenShift's API server and by no other. */
export const OPENSHIFT_RESOURCE = "clusterversions.config.openshift.io";

/** What an installation may tell this module. */
export const settingsSchema = z.strictObject({
  enabled: z.boolean().optional(),
  namespace: z.string().min(1).max(63).optional(),
  startupTaint: z
    .string()
    .refine((key) => checkLabelKey(key) === undefined, { error: "must be the key of a taint" })
    .optional(),
  gracePeriodSeconds: z.int().min(0).max(86_400).optional(),
  openshift: z.boolean().optional(),
});

export interface Settings {
  /** Off: nothing is labelled, and the startup taint is taken off wherever it is. */
  readonly enabled: boolean;
  /** The only namespace whose rules count; `undefined`: all do. */
  readonly namespace: string | undefined;
  readonly startupTaint: string;
  readonly graceMs: number;
  /** Whether NodeRestriction is OpenShift's; `undefined`: as the cluster shows. */
  readonly openshift: boolean | undefined;
}

export function settingsOf(installation: Installation): Settings {
  const told = installation.settings?.[MODULE];
  const grace = at(told, "gracePeriodSeconds");
  const openshift = at(told, "openshift");
  return {
    enabled: at(told, "enabled") !== false,
    namespace: stringAt(told, "namespace"),
    startupTaint: stringAt(told, "startupTaint") ?? STARTUP_TAINT,
    graceMs: (typeof grace === "number" ? grace : GRACE_SECONDS) * 1_000,
    openshift: typeof openshift === "boolean" ? openshift : undefined,
  };
}

/** Why objects of this namespace have no effect, whatever they say. */
export function inertBecause(namespace: string, settings: Settings): string | undefined {
  if (!settings.enabled) return "node-labels is switched off in usher's configuration";
  return settings.namespace === undefined || settings.namespace === namespace
    ? undefined
    : `only objects in namespace ${settings.namespace} count, as usher's configuration says`;
}

/** In which of the two worlds we are. */
export function isOpenshift(settings: Settings, view: View): boolean {
  return settings.openshift ?? view.served(OPENSHIFT_RESOURCE);
}
