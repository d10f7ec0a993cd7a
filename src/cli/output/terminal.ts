import { styleText } from "node:util";
import type { Io, Output } from "../io.ts";

type Style = "red" | "green" | "yellow" | "bold";

/** The outputs of a command: data on `out`, everything else on stderr. */
export interface Terminal {
  readonly out: (text: string) => void;
  /** Hints and progress messages. Suppressed by --quiet. */
  readonly note: (text: string) => void;
  /** Warnings, as kubectl prints those of the API server. Suppressed by --quiet. */
  readonly warn: (text: string) => void;
  /** Errors. Never suppressed. */
  readonly complain: (text: string) => void;
  /** The columns of `out`; absent if it is not a terminal. */
  readonly width: number | undefined;
  /** Colours the text of `out`. */
  readonly paint: (style: Style, text: string) => string;
  /** As `Progress.show`. */
  readonly progress: (doing: string, things: string, done: number, total: number | undefined) => void;
  readonly endProgress: () => void;
}

export function terminal(io: Io, options: { readonly quiet?: boolean }): Terminal {
  const quiet = options.quiet === true;
  const progress = new Progress(io.stderr);
  const say = (output: Output, text: string) => {
    progress.clear();
    output.write(`${text}\n`);
  };
  const painter = (output: Output) => (style: Style, text: string) =>
    isColoured(output, io.env) ? styleText(style, text, { validateStream: false }) : text;
  const paintError = painter(io.stderr);
  return {
    out: (text) => say(io.stdout, text),
    note: (text) => quiet || say(io.stderr, text),
    warn: (text) => quiet || say(io.stderr, `${paintError("yellow", "Warning:")} ${text}`),
    complain: (text) => say(io.stderr, text),
    width: io.stdout.isTTY === true ? io.stdout.columns : undefined,
    paint: painter(io.stdout),
    progress: (...step) => quiet || progress.show(...step),
    endProgress: () => progress.clear(),
  };
}

/** As Node decides: FORCE_COLOR counts most, also if the output is not a terminal, such as a CI log. */
function isColoured({ isTTY }: Output, { FORCE_COLOR: force, NO_COLOR: no = "" }: Io["env"]): boolean {
  if (force !== undefined) return force !== "0" && force !== "false";
  return isTTY === true && no === "";
}

/** Prints nothing. */
export const SILENT: Terminal = {
  out: () => undefined,
  note: () => undefined,
  warn: () => undefined,
  complain: () => undefined,
  width: undefined,
  paint: (_, text) => text,
  progress: () => undefined,
  endProgress: () => undefined,
};

/**
 * Text of a manifest that is safe to print: on one line, without control characters, escape sequences and bidirectional overrides. Names
 * are not validated yet, so they may contain anything.
 */
export function printable(text: string): string {
  return text.replace(/\s*\n\s*/g, " ").replace(/[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]/g, "\u00b7");
}

/** Shorter work shows no progress. */
const SILENT_MS = 1_000;

/** Ten frames a second: smooth, and cheap. */
const REDRAW_MS = 100;

/** Without a terminal, such as in a CI log. */
const LINE_MS = 10_000;

/** Cells of the bar on a terminal. */
const BAR = 20;

/** Progress of long work: one line with a bar that is rewritten on a terminal, elsewhere a line every ten seconds. */
export class Progress {
  readonly #output: Output;
  readonly #live: boolean;
  readonly #now: () => number;
  #work = "";
  #done = 0;
  #started = 0;
  #shown = 0;
  #open = false;

  constructor(output: Output, now: () => number = Date.now) {
    this.#output = output;
    this.#live = output.isTTY === true;
    this.#now = now;
  }

  /** `doing` and `things` as in `reading 1200 of 10000 documents`. Without a total, as of a stream, the work has no end to show. */
  show(doing: string, things: string, done: number, total: number | undefined): void {
    const now = this.#now();
    const work = `${doing} ${things}`;
    // The same work that begins again, such as the mutants of a second suite, has its own rate.
    if (work !== this.#work || done < this.#done) {
      if (work !== this.#work) this.#shown = now + (this.#live ? SILENT_MS - REDRAW_MS : 0);
      this.#work = work;
      this.#started = now;
    }
    this.#done = done;
    if (now - this.#shown < (this.#live ? REDRAW_MS : LINE_MS)) return;
    this.#shown = now;
    const count = total === undefined ? `${done}` : `${done} of ${total}`;
    const bar = this.#live && total !== undefined ? `${barOf(done, total)} ` : "";
    const text = `${doing} ${bar}${count} ${things}${pace(done, total, now - this.#started)}`;
    this.#output.write(this.#live ? `\r\u001b[K${text}` : `${text}\n`);
    this.#open = this.#live;
  }

  /** Clears the line before other output. */
  clear(): void {
    if (this.#open) this.#output.write("\r\u001b[K");
    this.#open = false;
  }
}

/** For fewer items a rate is meaningless: two replicas are not ready at 0.2 a second. */
const FEWEST_PACED = 10;

function pace(done: number, total: number | undefined, ms: number): string {
  if (done === 0 || ms <= 0 || (total ?? done) < FEWEST_PACED) return "";
  const rate = (done / ms) * 1_000;
  const left = total === undefined ? "" : `, ${Math.ceil((total - done) / rate)} s left`;
  return `, ${rate < 10 ? rate.toFixed(1) : Math.round(rate)}/s${left}`;
}

/** `[####................]` */
function barOf(done: number, total: number): string {
  const full = total === 0 ? BAR : Math.min(BAR, Math.floor((done / total) * BAR));
  return `[${"#".repeat(full)}${".".repeat(BAR - full)}]`;
}
