import type { Log } from "../core/log.ts";

/** A log that starts later must still show failures. */
const AGAIN_MS = 3_600_000;

/** Logs a message once that a loop would log every few seconds. */
export class DeduplicatedLog {
  readonly #log: Log;
  readonly #clock: () => number;
  readonly #logged = new Set<string>();
  /** Failures since the last success: the reasons that were logged, and since when. */
  readonly #failing = new Map<string, { readonly since: number; readonly reasons: Set<string> }>();

  constructor(log: Log, clock: () => number) {
    this.#log = log;
    this.#clock = clock;
  }

  clear(): void {
    this.#logged.clear();
    this.#failing.clear();
  }

  once(key: string, facts: object, message: string): void {
    if (this.#logged.has(key)) return;
    this.#logged.add(key);
    this.#log.warn(facts, message);
  }

  /** An object of another owner with usher's name, and the consequence. */
  conflict(what: string, report: readonly string[], never = false): void {
    const next = never ? "" : "; to make it usher's, run usher install --take-over";
    this.once(report.join(), { report }, `ownership conflict: ${what} is left unchanged${next}`);
  }

  /** Logged when it begins, with each new reason, and every hour. */
  failed(what: string, error: unknown, message: string): void {
    const why = error instanceof Error ? error.message : String(error);
    const known = this.#failing.get(what);
    const now = this.#clock();
    const recent = known !== undefined && now - known.since < AGAIN_MS;
    const { since, reasons } = recent ? known : { since: now, reasons: new Set<string>() };
    this.#failing.set(what, { since, reasons });
    if (reasons.has(why)) return;
    reasons.add(why);
    this.#log.warn({ what, error: why }, message);
  }

  /** The next failure is logged again. */
  succeeded(what: string): void {
    this.#failing.delete(what);
  }
}
