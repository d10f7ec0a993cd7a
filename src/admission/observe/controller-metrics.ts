import type { Registry } from "prom-client";
import type { ControllerStats } from "../../core/module/reconciler.ts";

/** The leader's controller: its workqueue, its writes, and its failures. */
export function registerController(
  { Counter, Gauge }: Pick<typeof import("prom-client"), "Counter" | "Gauge">,
  registry: Registry,
  controllerStats: () => ControllerStats,
): void {
  const registers = [registry];
  new Gauge({
    name: "usher_plan_items",
    help: "Items in the workqueue of the controller: due, running, or delayed (later). Only the leader has any.",
    labelNames: ["state"],
    registers,
    collect() {
      for (const [state, n] of Object.entries(controllerStats().items)) this.set({ state }, n);
    },
  });
  new Gauge({
    name: "usher_plan_items_failing",
    help: "Items of the workqueue whose last write failed, by module; they are retried. Only the leader has any.",
    labelNames: ["module"],
    registers,
    collect() {
      for (const [module, n] of controllerStats().failing) this.set({ module }, n);
    },
  });
  new Counter({
    name: "usher_plan_writes_total",
    help: "Writes of reconcilers, by module, resource and result: done, failed, or conflict, which is reconciled again.",
    labelNames: ["module", "resource", "result"],
    registers,
    collect() {
      this.reset();
      for (const { count, ...labels } of controllerStats().writes) this.inc(labels, count);
    },
  });
  new Counter({
    name: "usher_events_dropped_total",
    help: "Events that could not be written, after retries or for lack of room.",
    registers,
    collect() {
      this.reset();
      this.inc(controllerStats().droppedEvents ?? 0);
    },
  });
}
