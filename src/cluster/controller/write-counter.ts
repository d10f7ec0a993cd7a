import { stringAt } from "../../core/json.ts";
import type { PlannedWrite, WriteCount } from "../../core/module/reconciler.ts";
import type { PlannedWriteResult } from "./planned-writes.ts";

/** Counts writes by module, resource and result. */
export class WriteCounter {
  readonly #counts = new Map<string, WriteCount>();

  get counts(): readonly WriteCount[] {
    return [...this.#counts.values()];
  }

  count(module: string, write: PlannedWrite, outcome: PlannedWriteResult): void {
    const result = typeof outcome === "string" ? outcome : "failed";
    const resource = resourceOf(write);
    const id = `${module} ${resource} ${result}`;
    const count = (this.#counts.get(id)?.count ?? 0) + 1;
    this.#counts.set(id, { module, resource, result, count });
  }
}

function resourceOf(write: PlannedWrite): string {
  if ("apply" in write) return stringAt(write.apply, "kind") ?? "";
  return "delete" in write ? write.delete.resource : write.of.resource;
}
