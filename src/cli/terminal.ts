import { styleText } from "node:util";

type Style = "red" | "green" | "yellow" | "cyan" | "bold" | "dim";

/** Where a command writes: data on `out`, all else on `note`. */
export interface Terminal {
  readonly out: (text: string) => void;
  /** For people: progress, warnings, hints. Silent with --quiet. */
  readonly note: (text: string) => void;
  /** What is wrong: never silent. */
  readonly complain: (text: string) => void;
  readonly paint: (style: Style, text: string) => string;
  /** A line that rewrites itself on a terminal; elsewhere a line every ten seconds. */
  readonly progress: (text: string) => void;
  readonly endProgress: () => void;
}

/** Elsewhere than on a terminal a line at most this often: a log needs signs of life, not frames. */
const PROGRESS_EVERY_MS = 10_000;

export function terminal(options: { readonly quiet: boolean }): Terminal {
  const colour = process.stdout.isTTY === true && (process.env["NO_COLOR"] ?? "") === "";
  const live = process.stderr.isTTY === true;
  let lastProgress = Date.now();
  let open = false;
  const endProgress = () => {
    if (open) process.stderr.write("\r\u001b[K");
    open = false;
  };
  return {
    out: (text) => {
      endProgress();
      process.stdout.write(`${text}\n`);
    },
    note: (text) => {
      endProgress();
      if (!options.quiet) process.stderr.write(`${text}\n`);
    },
    complain: (text) => {
      endProgress();
      process.stderr.write(`${text}\n`);
    },
    paint: (style, text) => (colour ? styleText(style, text, { validateStream: false }) : text),
    progress: (text) => {
      if (options.quiet) return;
      if (live) {
        process.stderr.write(`\r\u001b[K${text}`);
        open = true;
      } else if (Date.now() - lastProgress >= PROGRESS_EVERY_MS) {
        process.stderr.write(`${text}\n`);
        lastProgress = Date.now();
      }
    },
    endProgress,
  };
}
