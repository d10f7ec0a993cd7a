/** The configurations of the simulated replicas: what `usher serve --config` reads. */
import type { Configuration } from "../../src/cli/configuration/configuration.ts";
import { assembleModules } from "../../src/cli/source/source.ts";
import { at, type JsonObject } from "../../src/core/json.ts";
import type { Assembly } from "../../src/core/module/assembly.ts";
import { modules } from "../../src/modules/all.ts";

export const OPEN_AFTER_SECONDS = 40;

/** All modules are on, and the waits are short. */
export const BASE: Configuration = {
  featureGates: { OpenShiftNodeSchedulingPolicy: true },
  watchdog: { openAfterSeconds: OPEN_AFTER_SECONDS },
  modules: {
    "node-labels": { gracePeriodSeconds: 5 },
    "node-guard": { builtIn: "None" },
    "pod-os": { podSecurity: { mode: "Replace" }, os: { write: true } },
  },
};

function withModule(name: string, settings: Record<string, unknown>): Configuration {
  return { ...BASE, modules: { ...BASE.modules, [name]: { ...BASE.modules?.[name], ...settings } } };
}

/** Policies of the API server stand in for placement while no replica is ready, and drift is repaired. */
export const STANDING_IN = withModule("placement", { fallback: "Compiled", repairDrift: true });

/** Webhooks alone protect nodes. */
export const WITHOUT_FALLBACK = withModule("node-guard", { fallback: false });

/** The configurations between which replicas are rolled out. */
export const CONFIGURATIONS: Readonly<Record<string, Configuration>> = {
  base: BASE,
  "placement off": withModule("placement", { enabled: false }),
  "node-guard off": withModule("node-guard", { enabled: false }),
  "pod-os off": withModule("pod-os", { enabled: false }),
  "node-labels off": withModule("node-labels", { enabled: false }),
  "project-limit off": withModule("project-limit", { enabled: false }),
  "the gate of node-guard off": { ...BASE, featureGates: {} },
  "the gate of pod-os off": { ...BASE, featureGates: { ...BASE.featureGates, IdentifyPodOS: false } },
  "Pod Security by the API server": withModule("pod-os", { podSecurity: { mode: "Complement" } }),
  "no fallback": WITHOUT_FALLBACK,
  "standby and drift repair": STANDING_IN,
  "a namespace excluded": { ...BASE, excludedNamespaces: ["lab"] },
};

/** As `usher serve --config` assembles it. */
export function assemblyOf(configuration: Configuration): Assembly {
  return assembleModules(modules, {}, configuration);
}

/** Whether policies of a module have an effect: it is on, and so is its gate or its mode. */
export function moduleIsOn({ modules: settings, featureGates }: Configuration, name: string): boolean {
  const given = (settings ?? {}) as JsonObject;
  if (at(given, name, "enabled") === false) return false;
  if (name === "node-guard") return featureGates?.["OpenShiftNodeSchedulingPolicy"] === true;
  return name !== "pod-os" || at(given, "pod-os", "podSecurity", "mode") === "Replace";
}
