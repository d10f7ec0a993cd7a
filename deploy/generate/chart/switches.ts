import { isObject, type Json, type JsonObject } from "../../../src/core/json.ts";
import { loadModules } from "../../../src/core/module/declaration.ts";
import { declarations } from "../../../src/modules/index.ts";

/** A setting that decides what is registered. */
export interface Switch {
  /** In a template: true where the setting has the value that is not the default. */
  readonly condition: string;
  /** Of the setting: two switches of one setting are never on together. */
  readonly path: string;
  /** A configuration with that value. */
  readonly configuration: JsonObject;
}

/** Every setting that decides what is registered, beside those that are names. */
export async function allSwitches(): Promise<readonly Switch[]> {
  const modules = await loadModules(declarations);
  const gates = modules.flatMap((module) => module.gates ?? []);
  return [
    ...gates.map((gate) => setting(["featureGates", gate.name], gate.default)),
    ...SETTINGS.map((path) => setting(path, false)),
    chosen(["modules", "pod-os", "podSecurity", "mode"], "Complement", "Replace"),
  ];
}

/** Settings of modules that are off by default and need rights or CRDs of their own. */
const SETTINGS: readonly (readonly string[])[] = [
  ["modules", "node-guard", "manageTaint"],
  ["modules", "node-guard", "schedulerCRD"],
  ["modules", "pod-os", "os", "repairNodeLabels"],
  ["modules", "placement", "repairDrift"],
];

function setting(path: readonly string[], otherwise: boolean): Switch {
  const found = dig(path, String(otherwise));
  return {
    condition: otherwise ? `not (${found})` : found,
    path: path.join("."),
    configuration: under(path, !otherwise),
  };
}

function chosen(path: readonly string[], otherwise: string, value: string): Switch {
  return {
    condition: `eq (${dig(path, JSON.stringify(otherwise))}) ${JSON.stringify(value)}`,
    path: path.join("."),
    configuration: under(path, value),
  };
}

function dig(path: readonly string[], otherwise: string): string {
  return `dig ${path.map((key) => JSON.stringify(key)).join(" ")} ${otherwise} .Values.configuration`;
}

function under(path: readonly string[], value: Json): JsonObject {
  const [key = "", ...rest] = path;
  return { [key]: rest.length === 0 ? value : under(rest, value) };
}

/** Both configurations in one. */
export function together(...configurations: readonly JsonObject[]): JsonObject {
  const all: Record<string, Json> = {};
  for (const [key, value] of configurations.flatMap((one) => Object.entries(one))) {
    const before = all[key];
    if (value !== undefined) all[key] = isObject(before) && isObject(value) ? together(before, value) : value;
  }
  return all;
}
