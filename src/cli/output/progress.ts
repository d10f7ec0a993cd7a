import type { Output } from "../io.ts";

/** Shorter work shows no progress. */
const SILENT_MS = 1_000;

/** Ten frames a second: smooth, and cheap. */
const REDRAW_MS = 100;

/** Without a terminal, such as in a CI log. */
const LINE_MS = 10_000;

/** Progress of long work: one line that is rewritten on a terminal, elsewhere a line every ten seconds. */
export class Progress {
  readonly #output: Output;
  readonly #live: boolean;
  readonly #now: () => number;
  #doing = "";
  #started = 0;
  #shown = 0;
  #open = false;

  constructor(output: Output, now: () => number = Date.now) {
    this.#output = output;
    this.#live = output.isTTY === true;
    this.#now = now;
  }

  /** `doing` and `things` as in `reading 1200 of 10000 documents`. */
  show(doing: string, things: string, done: number, total: number): void {
    const now = this.#now();
    if (doing !== this.#doing) {
      this.#doing = doing;
      this.#started = now;
      this.#shown = now + (this.#live ? SILENT_MS - REDRAW_MS : 0);
    }
    if (now - this.#shown < (this.#live ? REDRAW_MS : LINE_MS)) return;
    this.#shown = now;
    const text = `${doing} ${done} of ${total} ${things}${pace(done, total, now - this.#started)}`;
    this.#output.write(this.#live ? `\r\u001b[K${text}` : `${text}\n`);
    this.#open = this.#live;
  }

  /** Clears the line before other output. */
  clear(): void {
    if (this.#open) this.#output.write("\r\u001b[K");
    this.#open = false;
  }
}

/** Of fewer things a pace says nothing: two replicas are not ready at 0.2 a second. */
const FEWEST_PACED = 10;

function pace(done: number, total: number, ms: number): string {
  if (done === 0 || ms <= 0 || total < FEWEST_PACED) return "";
  const rate = (done / ms) * 1_000;
  const left = Math.ceil((total - done) / rate);
  return `, ${rate < 10 ? rate.toFixed(1) : Math.round(rate)}/s, ${left} s left`;
}
