import { z } from "zod";
import { DEFAULT_WATCHDOG, type WatchdogSettings } from "../../core/module/installation.ts";
import type { Module } from "../../core/module/module.ts";
import { CallError } from "../exit.ts";

const name = z.string().min(1).max(253);

/** `spec.watchdog` of the configuration. */
export const WATCHDOG = z.strictObject({
  enabled: z.boolean().optional().describe("Whether webhooks are ever opened. Default true."),
  openAfterSeconds: z
    .int()
    .min(5)
    .max(86_400)
    .optional()
    .describe("Seconds without a ready replica after which fail-closed webhooks are opened. Default 300."),
  open: z
    .array(name)
    .max(64)
    .optional()
    .describe("Modules whose webhooks are opened though they stay closed by default. Default none."),
});

/** A module that does not exist would never be opened, though someone counts on it. */
export function watchdogOf(
  modules: readonly Module[],
  { enabled, openAfterSeconds, open = [] }: z.infer<typeof WATCHDOG>,
): WatchdogSettings {
  const names = modules.map((module) => module.name);
  for (const [i, module] of open.entries()) {
    if (!names.includes(module))
      throw new CallError(`spec.watchdog.open[${i}]: no module ${module}; modules: ${names.join(", ")}`);
  }
  return {
    enabled: enabled ?? DEFAULT_WATCHDOG.enabled,
    openAfterSeconds: openAfterSeconds ?? DEFAULT_WATCHDOG.openAfterSeconds,
    open,
  };
}
