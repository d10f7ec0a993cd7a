// Numbers in readable form.
import type { Spread } from "./statistics.ts";

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

/** `10,000` */
export function count(value: number): string {
  return whole.format(value);
}

/** Two decimal places for ratios. */
export function ratio(value: number): string {
  return value.toFixed(2);
}

export function range({ least, most }: Spread, show: (value: number) => string): string {
  return `${show(least)} to ${show(most)}`;
}

/** From µs: `850 µs`, `1.2 ms` */
export function time(microseconds: number): string {
  if (microseconds < 1_000) return `${microseconds.toFixed(microseconds < 100 ? 1 : 0)} µs`;
  return `${(microseconds / 1_000).toFixed(2)} ms`;
}

export function mebibytes(bytes: number): string {
  return `${(bytes / 1_048_576).toFixed(0)} MiB`;
}
