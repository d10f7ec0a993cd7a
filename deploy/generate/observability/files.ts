import { allModules } from "../../../src/modules/all.ts";
import type { GeneratedFile } from "../generated-files.ts";
import { metricsReference } from "./metrics-reference.ts";

/** The metrics reference, dashboard, alerts and runbook. */
export function observabilityFiles(): GeneratedFile[] {
  return [{ path: "docs/metrics.md", text: metricsReference(allModules) }];
}
