import type { Registry } from "prom-client";
import type { ControllerFigures } from "../../core/module/reconciler.ts";

/** What the leader does beside admission: how much waits, what was written, and what can't be. */
export function registerController(
  { Counter, Gauge }: Pick<typeof import("prom-client"), "Counter" | "Gauge">,
  registry: Registry,
  plans: () => ControllerFigures,
): void {
  const registers = [registry];
  new Gauge({
    name: "usher_plan_items",
    help: "Work items of planners: due, running, or to be looked at later. Only the leader has any.",
    labelNames: ["state"],
    registers,
    collect() {
      for (const [state, n] of Object.entries(plans().items)) this.set({ state }, n);
    },
  });
  new Gauge({
    name: "usher_plan_items_failing",
    help: "Work items whose last write failed, by module; they are tried again. Only the leader has any.",
    labelNames: ["module"],
    registers,
    collect() {
      for (const [module, n] of plans().failing) this.set({ module }, n);
    },
  });
  new Counter({
    name: "usher_plan_writes_total",
    help: "Writes that planners asked for, by module, resource and result: done, failed, or conflict, which is planned anew.",
    labelNames: ["module", "resource", "result"],
    registers,
    collect() {
      this.reset();
      for (const { count, ...labels } of plans().writes) this.inc(labels, count);
    },
  });
}
