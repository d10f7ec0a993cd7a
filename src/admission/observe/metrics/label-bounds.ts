import { type MetricLabel, OTHER } from "../../../core/module/metric.ts";

type Labels = Readonly<Record<string, string>>;

/** Keeps the values of declared labels bounded: Prometheus keeps a series for each combination. */
export class LabelBounds {
  readonly #labels: readonly MetricLabel[];
  readonly #known: Map<string, Set<string>>;

  constructor(labels: readonly MetricLabel[]) {
    this.#labels = labels;
    this.#known = new Map(
      labels.map((label) => [label.name, new Set("values" in label ? label.values : [])]),
    );
  }

  /** The declared labels with bounded values, empty if one is missing. */
  bounded(labels: Labels): Record<string, string> {
    const bounded: Record<string, string> = {};
    for (const label of this.#labels) bounded[label.name] = this.#value(label, labels[label.name] ?? "");
    return bounded;
  }

  #value(label: MetricLabel, value: string): string {
    const known = this.#known.get(label.name);
    if (value === "" || known?.has(value)) return value;
    if (!("limit" in label) || known === undefined || known.size >= label.limit) return OTHER;
    known.add(value);
    return value;
  }
}
