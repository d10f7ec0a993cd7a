import type { CappedLabel } from "../../../core/evaluate/effects.ts";

/** Keeps the values of one label from growing without end: the first so many have their own name, the rest is `other`. */
export class LabelCap {
  readonly #label: string;
  readonly #most: number;
  readonly #known = new Set<string>();

  constructor({ label, most }: CappedLabel) {
    this.#label = label;
    this.#most = most;
  }

  bounded(labels: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
    const value = labels[this.#label] ?? "";
    if (this.#known.has(value)) return labels;
    if (this.#known.size >= this.#most) return { ...labels, [this.#label]: "other" };
    this.#known.add(value);
    return labels;
  }
}
