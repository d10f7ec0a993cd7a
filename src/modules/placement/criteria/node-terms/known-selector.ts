import { isObject, type Json, own } from "../../../../core/json.ts";

/** A nodeSelector as terms are judged beside it; nothing where what is written there can match no node. */
export type Selector =
  | {
      /** How many keys it had when it was read. */
      readonly size: number;
      readonly get: (key: string) => string | undefined;
      readonly keys: () => Iterable<string>;
    }
  | undefined;

/** Reads each value once, to see that all are texts, and copies none: a pod may have a hundred thousand. */
export function selectorIn(written: Json | undefined): Selector {
  if (written === undefined || written === null) return { size: 0, get: () => undefined, keys: () => [] };
  if (!isObject(written)) return undefined;
  let size = 0;
  for (const key in written) {
    const value = written[key];
    if (value === undefined || value === null) continue;
    if (typeof value !== "string") return undefined;
    size++;
  }
  return {
    size,
    get: (key) => {
      const value = own(written, key);
      return typeof value === "string" ? value : undefined;
    },
    keys: () => Object.keys(written),
  };
}
