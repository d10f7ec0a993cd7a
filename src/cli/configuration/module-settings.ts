import type { JsonObject } from "../../core/json.ts";
import type { Module } from "../../core/module/module.ts";
import { CallError } from "../exit.ts";

/** `spec.modules` of a configuration: settings by module. `enabled` is a setting of every module. */
export type GivenSettings = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

/** The enabled modules of this configuration. Disabled ones are not assembled, so they have no hooks, reads or permissions. */
export function enabledModules(modules: readonly Module[], given: GivenSettings = {}): Module[] {
  return modules.filter(({ name }) => given[name]?.["enabled"] !== false);
}

/** The same settings with no module off. */
export function allEnabled(given: GivenSettings = {}): Record<string, Record<string, unknown>> {
  return Object.fromEntries(Object.entries(given).map(([name, one]) => [name, { ...one, enabled: true }]));
}

/** Each module parses its own settings, also while it is off. Unknown settings would have no effect, so they are errors. */
export function settingsOf(modules: readonly Module[], given: GivenSettings): Record<string, JsonObject> {
  const settings: Record<string, JsonObject> = {};
  for (const [name, { enabled = true, ...value }] of Object.entries(given)) {
    const module = modules.find((one) => one.name === name);
    if (module === undefined) {
      const names = modules.map((one) => one.name).join(", ");
      throw new CallError(`spec.modules.${name}: no such module; the modules are: ${names}`);
    }
    if (typeof enabled !== "boolean")
      throw new CallError(`spec.modules.${name}.enabled: must be true or false`);
    settings[name] = parsed(module, value);
  }
  return settings;
}

function parsed({ name, settings }: Module, value: Readonly<Record<string, unknown>>): JsonObject {
  const [first] = Object.keys(value);
  if (settings === undefined) {
    if (first === undefined) return {};
    throw new CallError(
      `spec.modules.${name}.${first}: unknown setting; the only one of this module is enabled`,
    );
  }
  const read = settings.safeParse(value);
  if (read.success) return read.data as JsonObject;
  const lines = read.error.issues.map(
    ({ path, message }) => `${["spec.modules", name, ...path].join(".")}: ${message}`,
  );
  throw new CallError(lines.join("\n"));
}
