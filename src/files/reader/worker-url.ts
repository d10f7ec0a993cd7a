/** The name of the worker's bundle beside the main one: `src/files/reader/reader-worker.ts` becomes `reader-worker.mjs`. */
const BUNDLED = "reader-worker.mjs";

/**
 * Where the worker's code is. In the source tree it is beside this file; in a bundle this file has become part of the bundle, and
 * the worker is a second bundle in the same directory.
 */
export function workerUrl(here: string = import.meta.url): URL {
  return new URL(here.endsWith(".ts") ? "./reader-worker.ts" : `./${BUNDLED}`, here);
}
