import { z } from "zod";
import type { Installation } from "../../core/installation/installation.ts";
import { moduleSetting } from "../../core/installation/setting-condition.ts";
import { isObject, type JsonObject } from "../../core/json.ts";
import { checkDnsLabel } from "../../core/kubernetes/names.ts";
import { configurationSchema, type PodSecurityConfiguration } from "./configuration.ts";

/** The name of this module in configurations, findings and metrics. */
export const MODULE = "pod-os";

/** The gate of all rules about the OS. */
export const IDENTIFY_POD_OS = "IdentifyPodOS";

const podSecurity = z
  .strictObject({
    mode: z.enum(["Complement", "Replace"]).optional(),
    configuration: configurationSchema.optional(),
    templates: z.enum(["Warn", "Deny"]).optional(),
    ephemeralContainers: z.enum(["Whole", "Added"]).optional(),
    windowsChecks: z.boolean().optional(),
  })
  .superRefine(({ mode, configuration, templates, ephemeralContainers, windowsChecks }, context) => {
    if (mode === "Replace") return;
    const idle = (setting: string, unless: string): void =>
      context.addIssue({ code: "custom", path: [setting], message: `has no effect ${unless}` });
    if (configuration !== undefined && templates !== "Deny")
      idle(
        "configuration",
        "in mode Complement, unless templates is Deny: the API server has a configuration of its own",
      );
    if (ephemeralContainers === "Added")
      idle("ephemeralContainers", "in mode Complement, where the API server judges pods: set mode: Replace");
    if (windowsChecks)
      idle("windowsChecks", "in mode Complement, where the API server judges pods: set mode: Replace");
  });

const os = z
  .strictObject({
    contradictions: z.enum(["Warn", "Deny", "Disabled", "Off"]).optional(),
    write: z.boolean().optional(),
    harden: z
      .array(
        z
          .string()
          .refine((name) => checkDnsLabel(name) === undefined, { error: "must be the name of a namespace" }),
      )
      .optional(),
    nodeMismatch: z.enum(["Warn", "Deny"]).optional(),
    repairNodeLabels: z.boolean().optional(),
  })
  .superRefine(({ nodeMismatch, write }, context) => {
    if (nodeMismatch === "Deny" && write !== true)
      context.addIssue({
        code: "custom",
        path: ["nodeMismatch"],
        message: "Deny needs write: true, else a refused pod is scheduled to the same node again and again",
      });
  });

/** The settings of this module in the configuration. */
export const settingsSchema = z.strictObject({ podSecurity: podSecurity.optional(), os: os.optional() });

export interface PodOSSettings {
  readonly podSecurity: {
    /**
     * `Complement`: the API server's plugin PodSecurity evaluates. `Replace`: usher does in its place. `Foresee`, which
     * no configuration has: the plugin evaluates, and a command predicts its result.
     */
    readonly mode: "Complement" | "Replace" | "Foresee";
    readonly configuration: PodSecurityConfiguration | undefined;
    readonly templates: "Warn" | "Deny";
    /** The evaluated part when an ephemeral container is added: the whole pod, or the added container. */
    readonly ephemeralContainers: "Whole" | "Added";
    /** Checks of Windows pods beyond the Pod Security Standards. */
    readonly windowsChecks: boolean;
  };
  readonly os: {
    /** `Off` is the earlier value for `Disabled`; YAML 1.1 reads it as a boolean without quotes. */
    readonly contradictions: "Warn" | "Deny" | "Disabled" | "Off";
    /** Whether `spec.os` and the node selector are written if the OS is known. */
    readonly write: boolean;
    /** Namespaces in which absent security fields are filled in. */
    readonly harden: readonly string[];
    /** The action for a pod on a node of another OS. */
    readonly nodeMismatch: "Warn" | "Deny";
    readonly repairNodeLabels: boolean;
  };
}

const DEFAULTS: PodOSSettings = {
  podSecurity: {
    mode: "Complement",
    configuration: undefined,
    templates: "Warn",
    ephemeralContainers: "Whole",
    windowsChecks: false,
  },
  os: { contradictions: "Warn", write: false, harden: [], nodeMismatch: "Warn", repairNodeLabels: false },
};

/** Usher evaluates Pod Security in place of the API server's plugin. */
export const REPLACES = moduleSetting(MODULE, ["podSecurity", "mode"], "Replace", DEFAULTS.podSecurity.mode);

/** The settings of a command that asks what would happen: Pod Security is evaluated, whichever component does it in the cluster. */
export function foresightSettings(settings: JsonObject | undefined): JsonObject {
  const given = isObject(settings?.["podSecurity"]) ? settings["podSecurity"] : {};
  return given["mode"] === "Replace"
    ? { ...settings }
    : { ...settings, podSecurity: { ...given, mode: "Foresee" } };
}

/** The settings in force. They were checked when the configuration was loaded. */
export function settingsOf(installation: Installation): PodOSSettings {
  const given = installation.settings?.[MODULE] as Given | undefined;
  if (given === undefined) return DEFAULTS;
  return {
    podSecurity: { ...DEFAULTS.podSecurity, ...given.podSecurity },
    os: { ...DEFAULTS.os, ...given.os },
  };
}

interface Given {
  readonly podSecurity?: Partial<PodOSSettings["podSecurity"]>;
  readonly os?: Partial<PodOSSettings["os"]>;
}
