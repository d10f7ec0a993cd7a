import type { Log } from "../../core/log.ts";

/** Whoever reads a log an hour later must still find what does not work. */
const AGAIN_MS = 3_600_000;

/** What was said already, so that who looks every few seconds does not fill the log. */
export class RepeatedLog {
  readonly #log: Log;
  readonly #clock: () => number;
  readonly #told = new Set<string>();
  /** What fails since it last worked: the reasons that were told, and when that began. */
  readonly #failing = new Map<string, { readonly since: number; readonly reasons: Set<string> }>();

  constructor(log: Log, clock: () => number) {
    this.#log = log;
    this.#clock = clock;
  }

  clear(): void {
    this.#told.clear();
    this.#failing.clear();
  }

  /** A thing that stays as it is, is told once. */
  once(key: string, facts: object, message: string): void {
    if (this.#told.has(key)) return;
    this.#told.add(key);
    this.#log.warn(facts, message);
  }

  /** An object of someone else's with our name, and what follows from that. */
  left(what: string, report: readonly string[]): void {
    this.once(
      report.join(),
      { report },
      `${what} is someone else's and is left; usher install --take-over makes it usher's`,
    );
  }

  /** A failure is told when it begins, with each new reason, and every hour. */
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

  /** It works, so its next failure is news. */
  worked(what: string): void {
    this.#failing.delete(what);
  }
}
