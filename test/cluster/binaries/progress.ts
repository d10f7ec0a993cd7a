// Says what is going on while something takes minutes. On a terminal one line is rewritten; elsewhere a new line comes now and
// then, so that a log neither looks dead nor overflows.
const LINE_EVERY_MS = 10_000;

export interface Output {
  readonly isTTY?: boolean | undefined;
  write(text: string): unknown;
}

/** Seconds as a person would say them. */
export function about(seconds: number): string {
  if (seconds < 90) return `${Math.max(10, Math.round(seconds / 10) * 10)} seconds`;
  return `${Math.round(seconds / 60)} minutes`;
}

/** Shows `title` and the time that passes until the returned function is called with how it ended. */
export function showProgress(output: Output, title: string): (ending: string) => void {
  const started = Date.now();
  const passed = (): string => `${((Date.now() - started) / 1000).toFixed(0)} s`;
  const terminal = output.isTTY === true;
  if (!terminal) output.write(`${title} …\n`);
  const timer = setInterval(
    () =>
      output.write(terminal ? `\r\u001b[K${title} … ${passed()}` : `  still at it: ${title}, ${passed()}\n`),
    terminal ? 1000 : LINE_EVERY_MS,
  );
  return (ending) => {
    clearInterval(timer);
    output.write(`${terminal ? "\r\u001b[K" : ""}${ending} after ${passed()}\n`);
  };
}
