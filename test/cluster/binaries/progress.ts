// Shows progress of work that takes minutes. A terminal gets one line that is rewritten; a log gets a new line now and
// then, so that it neither looks dead nor overflows.
const LINE_EVERY_MS = 10_000;

export interface Output {
  readonly isTTY?: boolean | undefined;
  write(text: string): unknown;
}

/** Seconds in readable form. */
export function about(seconds: number): string {
  if (seconds < 90) return `${Math.max(10, Math.round(seconds / 10) * 10)} seconds`;
  return `${Math.round(seconds / 60)} minutes`;
}

/** Shows `title` and the elapsed time until the returned function is called with the outcome. */
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
