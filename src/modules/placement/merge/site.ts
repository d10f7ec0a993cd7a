import type { Draft } from "../../../core/evaluate/draft.ts";
import type { JsonObject } from "../../../core/json.ts";
import type { WorkloadKind } from "../../../core/kubernetes/workloads.ts";
import type { Path } from "../../../core/path.ts";

/** An object to be placed, and where its pod spec is. */
export interface Site {
  readonly draft: Draft;
  readonly workload: WorkloadKind;
  readonly spec: Path;
  readonly labels: JsonObject | undefined;
}
