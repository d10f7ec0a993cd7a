import { z } from "zod";
import type { Gate, Gates } from "../../core/installation/gates.ts";
import type { Installation } from "../../core/installation/installation.ts";
import { gateEnabled, moduleSetting } from "../../core/installation/setting-condition.ts";
import { at, isObject, type JsonObject, stringAt } from "../../core/json.ts";
import type { View } from "../../core/view/view.ts";
import { inlineProblems } from "./check/inline-policy.ts";
import { configSpec } from "./groups/group-schema.ts";

/** The name of this module in configurations, findings and metrics. */
export const MODULE = "node-guard";

export const GATE: Gate = {
  name: "OpenShiftNodeSchedulingPolicy",
  stage: "alpha",
  default: false,
  summary: "keeps unauthorised workloads off protected nodes",
};

/** Of everything that this module reads, writes or registers. */
export const GATE_ON = gateEnabled(GATE);

export function isOn(gates: Gates): boolean {
  return gates.enabled(GATE.name);
}

const BUILT_IN = ["Auto", "Kubernetes", "OpenShift", "None"] as const;
type BuiltIn = (typeof BUILT_IN)[number];

/** The settings of this module in the configuration. */
export const settingsSchema = z.strictObject({
  builtIn: z
    .enum(BUILT_IN)
    .optional()
    .describe(
      "The built-in group ControlPlane and its lists where there is no NodeSchedulingPolicyConfig. Auto: OpenShift's where its API is served, Kubernetes' elsewhere. Defaults to Auto.",
    ),
  policy: z
    .strictObject({
      apiVersion: z.enum(["scheduling.openshift.io/v1alpha1", "scheduling.openshift.io/alphav1"]).optional(),
      kind: z.literal("NodeSchedulingPolicyConfig").optional(),
      ...configSpec.shape,
    })
    // A log is not read for a principal without effect: a mistake here is an error of the configuration.
    .superRefine((policy, context) => {
      for (const { path, message } of inlineProblems(policy as JsonObject))
        context.addIssue({ code: "custom", path: [...path], message });
    })
    .optional()
    .describe("A NodeSchedulingPolicyConfig, in place of a file."),
  fallback: z
    .boolean()
    .optional()
    .describe(
      "Whether usher keeps ValidatingAdmissionPolicies that refuse what groups in Enable refuse, also while usher is away. Defaults to true.",
    ),
  manageTaint: z
    .boolean()
    .optional()
    .describe(
      "Whether usher sets and removes the taint of control-plane nodes by mastersSchedulable of the Scheduler object. Defaults to false.",
    ),
  schedulerCRD: z
    .boolean()
    .optional()
    .describe(
      "Whether usher registers schedulers.config.openshift.io where it is not served. Other software may take the cluster for OpenShift then. Defaults to false.",
    ),
});

/** Served by OpenShift's API server and by no other. */
export const OPENSHIFT_RESOURCE = "clusterversions.config.openshift.io";

function settingsOf(installation: Installation): JsonObject | undefined {
  return installation.settings?.[MODULE];
}

/** Whose built-in group counts. */
export function builtInOf(installation: Installation, view: View): "Kubernetes" | "OpenShift" | "None" {
  const chosen = (stringAt(settingsOf(installation), "builtIn") ?? "Auto") as BuiltIn;
  if (chosen !== "Auto") return chosen;
  return view.served(OPENSHIFT_RESOURCE) ? "OpenShift" : "Kubernetes";
}

export function inlinePolicy(installation: Installation): JsonObject | undefined {
  const policy = at(settingsOf(installation), "policy");
  return isObject(policy) ? policy : undefined;
}

export function keepsFallback(installation: Installation): boolean {
  return at(settingsOf(installation), "fallback") !== false;
}

export const MANAGES_TAINT = moduleSetting(MODULE, ["manageTaint"], true, false);

export function managesTaint(installation: Installation): boolean {
  return at(settingsOf(installation), "manageTaint") === true;
}

export const SHIPS_SCHEDULER = moduleSetting(MODULE, ["schedulerCRD"], true, false);
