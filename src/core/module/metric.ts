import type { Installation } from "../installation/installation.ts";

/** A label with bounded values: listed, or the first N. Every other value is `other`. */
export type MetricLabel =
  | { readonly name: string; readonly values: readonly string[] }
  | { readonly name: string; readonly limit: number };

/** A metric that a module declares. */
export interface Metric {
  /** Unique among all modules. By convention `usher_…`, or upstream's name if a module replaces upstream's metric. */
  readonly name: string;
  /** A counter follows decisions; a gauge is read from the module's reconciler at each scrape. */
  readonly type: "counter" | "gauge";
  readonly help: string;
  readonly labels: readonly MetricLabel[];
  /** Of a counter: series that are there from the start, at zero. @default each appears with its first step */
  readonly initial?: readonly Readonly<Record<string, string>>[];
  /** Whether the metric exists in this installation. @default always */
  readonly registered?: (installation: Installation) => boolean;
}

/** The value of a gauge. */
export interface Figure {
  readonly metric: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** Replaces label values beyond those that a metric declares. */
export const OTHER = "other";
