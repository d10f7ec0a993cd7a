import type { Registry } from "prom-client";
import type { ControllerStats } from "../../../core/module/reconciler.ts";
import { CONTROLLER_METRICS } from "./own-metrics.ts";

/** The leader's controller: its workqueue, its writes, and its failures. */
export function registerController(
  { Counter, Gauge }: Pick<typeof import("prom-client"), "Counter" | "Gauge">,
  registry: Registry,
  controllerStats: () => ControllerStats,
): void {
  const described = (name: keyof typeof CONTROLLER_METRICS) => {
    const { help, labels } = CONTROLLER_METRICS[name];
    return { name, help, labelNames: [...labels], registers: [registry] };
  };
  new Gauge({
    ...described("usher_leader"),
    collect() {
      this.set(controllerStats().leading === true ? 1 : 0);
    },
  });
  new Gauge({
    ...described("usher_plan_items"),
    collect() {
      for (const [state, n] of Object.entries(controllerStats().items)) this.set({ state }, n);
    },
  });
  new Gauge({
    ...described("usher_plan_items_failing"),
    collect() {
      for (const [module, n] of controllerStats().failing) this.set({ module }, n);
    },
  });
  new Counter({
    ...described("usher_plan_writes_total"),
    collect() {
      this.reset();
      for (const { count, ...labels } of controllerStats().writes) this.inc(labels, count);
    },
  });
  new Gauge({
    ...described("usher_object_drift"),
    collect() {
      this.reset();
      for (const [object, n] of controllerStats().drift ?? []) this.set({ object }, n);
    },
  });
  new Counter({
    ...described("usher_events_dropped_total"),
    collect() {
      this.reset();
      this.inc(controllerStats().droppedEvents ?? 0);
    },
  });
}
