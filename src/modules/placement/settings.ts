import { z } from "zod";
import { resourceName } from "../../core/decision/request.ts";
import type { Installation } from "../../core/installation/installation.ts";
import { moduleSetting, type SettingCondition } from "../../core/installation/setting-condition.ts";
import { type Json, listAt } from "../../core/json.ts";
import { type Principal, parsePrincipal } from "../../core/kubernetes/principals.ts";
import { BUILT_IN_WORKLOADS, type WorkloadKind } from "../../core/kubernetes/workloads.ts";

const BUILT_IN = BUILT_IN_WORKLOADS.map(resourceName);
const BUILT_IN_GROUPS: ReadonlySet<string> = new Set(BUILT_IN_WORKLOADS.map(({ group }) => group));

const resource = z.string().refine(isWorkload, {
  error: `must be one of ${BUILT_IN.join(", ")}, or a kind of spec.workloads such as rollouts.argoproj.io`,
});

const principal = z.string().refine((text) => !("problem" in parsePrincipal(text)), {
  error: "must be a service account such as argo-rollouts/argo-rollouts, or the name of a user",
});

/** The settings of placement in the configuration. */
export const settings = z.strictObject({
  fallback: z
    .enum(["None", "Compiled"])
    .optional()
    .describe(
      "Compiled: usher keeps its policies compiled to MutatingAdmissionPolicies, which place new pods while no replica is ready; they need Kubernetes 1.36 and the watchdog. Defaults to None.",
    ),
  repairDrift: z
    .boolean()
    .optional()
    .describe(
      "Whether usher itself reapplies policies to workloads that are missing them or have a stale version of them, a few at a time. Defaults to false.",
    ),
  resources: z
    .array(resource)
    .min(1)
    .optional()
    .describe(
      "The kinds that placement changes and checks, such as statefulsets.apps. Webhooks, reviews and the drift scan follow. Defaults to all.",
    ),
  trustedControllers: z
    .array(principal)
    .optional()
    .describe(
      "Service accounts of controllers that create objects from a template, beside those of kube-controller-manager: enforcement does not check what they create for an owner that placement covers.",
    ),
});

/** A name with a group that Kubernetes does not have may be a kind of the configuration. */
function isWorkload(name: string): boolean {
  const dot = name.indexOf(".");
  return BUILT_IN.includes(name) || (dot > 0 && !BUILT_IN_GROUPS.has(name.slice(dot + 1)));
}

function settingOf({ settings: configured }: Installation, name: keyof typeof settings.shape) {
  return configured?.["placement"]?.[name];
}

/** The workload is one that placement changes and checks. */
export const PLACED: SettingCondition = { listed: ["modules", "placement", "resources"] };

/** Whether compiled policies stand in for the webhooks. */
export const COMPILES_FALLBACK = moduleSetting("placement", ["fallback"], "Compiled", "None");

export const REPAIRS_DRIFT = moduleSetting("placement", ["repairDrift"], true, false);

/** Whether the leader may write to stored workloads. */
export function repairsDrift(installation: Installation): boolean {
  return settingOf(installation, "repairDrift") === true;
}

/** The kinds that placement changes and checks. */
export function placedWorkloads(installation: Installation): readonly WorkloadKind[] {
  return installation.workloads.all.filter((workload) => isPlaced(workload, installation));
}

export function isPlaced(workload: WorkloadKind, installation: Installation): boolean {
  const chosen = settingOf(installation, "resources");
  return !Array.isArray(chosen) || chosen.includes(resourceName(workload));
}

/** The configured controllers. Unreadable ones are skipped: the configuration was validated when it was loaded. */
export function trustedControllers(installation: Installation): readonly Principal[] {
  const named: Json | undefined = settingOf(installation, "trustedControllers");
  return listAt({ named: named ?? null }, "named").flatMap((one) => {
    const read = typeof one === "string" ? parsePrincipal(one) : { problem: "" };
    return "problem" in read ? [] : [read];
  });
}
