import { styleText } from "node:util";
import type { Io, Output } from "../io.ts";
import { Progress } from "./progress.ts";

type Style = "red" | "green" | "yellow" | "bold";

/** Where a command writes: data on `out`, everything else on stderr. */
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
  /** Colours what goes to `out`. */
  readonly paint: (style: Style, text: string) => string;
  /** As `Progress.show`. */
  readonly progress: (doing: string, things: string, done: number, total: number) => void;
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
