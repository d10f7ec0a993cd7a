import type { Counter, Registry } from "prom-client";
import type { Count } from "../../../core/decision/decision.ts";
import type { Figure, Metric } from "../../../core/module/metric.ts";
import { LabelBounds } from "./label-bounds.ts";

type Prometheus = Pick<typeof import("prom-client"), "Counter" | "Gauge">;

/** Registers metrics that modules declare. The returned function counts; increments of undeclared metrics are ignored. */
export function registerModuleMetrics(
  { Counter, Gauge }: Prometheus,
  registry: Registry,
  metrics: readonly Metric[],
  figures: () => readonly Figure[],
): (count: Count) => void {
  const registers = [registry];
  const counters = new Map<string, { readonly counter: Counter<string>; readonly bounds: LabelBounds }>();
  for (const { name, type, help, labels, initial = [] } of metrics) {
    const definition = { name, help, labelNames: labels.map((label) => label.name), registers };
    if (type === "counter") {
      const counter = new Counter(definition);
      for (const series of initial) counter.inc(series, 0);
      counters.set(name, { counter, bounds: new LabelBounds(labels) });
      continue;
    }
    new Gauge({
      ...definition,
      collect() {
        this.reset();
        // New at each scrape: removed values must not use up the limit.
        const bounds = new LabelBounds(labels);
        for (const figure of figures())
          if (figure.metric === name && Number.isFinite(figure.value))
            this.inc(bounds.bounded(figure.labels), figure.value);
      },
    });
  }
  return ({ metric, labels, by = 1 }) => {
    const known = counters.get(metric);
    // A counter never goes down, and NaN would stay in it.
    if (by > 0 && Number.isFinite(by)) known?.counter.inc(known.bounds.bounded(labels), by);
  };
}
