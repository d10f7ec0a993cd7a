// The longest stall of usher's loop while it reads a cluster. Its own gauge begins only when it starts to serve, which is after
// that; so this looks from within the process, from the first request to the API server until usher says what it has read.
import { readFileSync } from "node:fs";

const EVERY_MS = 1;

/** Code to run in usher's process before usher, as an address for `--import`. It writes milliseconds into the file. */
export function stallWatch(file: string): string {
  return `data:text/javascript,${encodeURIComponent(watch(file))}`;
}

export function stallIn(file: string): number {
  const milliseconds = Number(readFileSync(file, "utf8"));
  if (!Number.isFinite(milliseconds)) throw new Error("no stall was measured");
  return milliseconds;
}

/** No file of its own: it must not load anything that usher would not. */
function watch(file: string): string {
  return `
    import { subscribe } from "node:diagnostics_channel";
    import { writeFileSync } from "node:fs";
    let last, timer, worst = 0;
    const look = () => {
      const now = performance.now();
      worst = Math.max(worst, now - last - ${EVERY_MS});
      last = now;
    };
    subscribe("http.client.request.start", () => {
      if (timer !== undefined) return;
      last = performance.now();
      timer = setInterval(look, ${EVERY_MS}).unref();
    });
    const write = process.stderr.write;
    process.stderr.write = function (text, ...rest) {
      if (timer !== undefined && / from https:/.test(String(text))) {
        look();
        clearInterval(timer);
        process.stderr.write = write;
        writeFileSync(${JSON.stringify(file)}, String(worst));
      }
      return write.call(process.stderr, text, ...rest);
    };
  `;
}
