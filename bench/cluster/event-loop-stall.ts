// The longest stall of usher's loop while it reads a cluster. Its own gauge begins only when it starts to serve, which
// is later; so this measures from within the process, from the first request to the API server until usher reports the
// cluster's size.
import { readFileSync } from "node:fs";

const EVERY_MS = 1;

/** In milliseconds. */
export interface Stall {
  /** As a client sees it. */
  readonly wall: number;
  /** The CPU time that the loop took at once. If others use the cores too, only this is usher's own. */
  readonly processor: number;
}

/** Code to run in usher's process before usher, as an address for `--import`. It writes the stalls into the file. */
export function stallWatch(file: string): string {
  return `data:text/javascript,${encodeURIComponent(watch(file))}`;
}

export function stallIn(file: string): Stall {
  const { wall, processor } = JSON.parse(readFileSync(file, "utf8")) as Stall;
  if (!(wall > 0 && processor > 0)) throw new Error("no stall was measured");
  return { wall, processor };
}

/** Not a separate file: it must not load anything that usher would not. */
function watch(file: string): string {
  return `
    import { subscribe } from "node:diagnostics_channel";
    import { writeFileSync } from "node:fs";
    let last, used, timer;
    const worst = { wall: 0, processor: 0 };
    const spent = () => {
      const { user, system } = process.threadCpuUsage();
      return (user + system) / 1000;
    };
    const look = () => {
      const now = performance.now();
      const until = spent();
      worst.wall = Math.max(worst.wall, now - last - ${EVERY_MS});
      worst.processor = Math.max(worst.processor, until - used);
      last = performance.now();
      used = spent();
    };
    subscribe("http.client.request.start", () => {
      if (timer !== undefined) return;
      last = performance.now();
      used = spent();
      timer = setInterval(look, ${EVERY_MS}).unref();
    });
    const write = process.stderr.write;
    process.stderr.write = function (text, ...rest) {
      if (timer !== undefined && / from https:/.test(String(text))) {
        look();
        clearInterval(timer);
        process.stderr.write = write;
        writeFileSync(${JSON.stringify(file)}, JSON.stringify(worst));
      }
      return write.call(process.stderr, text, ...rest);
    };
  `;
}
