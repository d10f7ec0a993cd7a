import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/**
 * Gives memory back to the operating system. Loading ten thousand policies makes V8's heap three times as large as what stays,
 * and an idle process keeps it so for minutes. It blocks for some hundredth of a second: right only before anyone is served.
 */
export function releaseMemory(): void {
  setFlagsFromString("--expose-gc");
  const collect: unknown = runInNewContext("gc");
  setFlagsFromString("--no-expose-gc");
  // Node makes an object for each tick, and V8 forgets the shape of those if none is alive now: each tick would take five times as long
  // for the rest of the process's life.
  process.nextTick(() => undefined);
  if (typeof collect === "function") collect({ type: "major", execution: "sync", flavor: "last-resort" });
}
