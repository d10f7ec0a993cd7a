import type { JsonObject } from "../../../core/json.ts";
import { stringAt } from "../../../core/json.ts";

/** Says on the object itself that somebody means what is otherwise refused. */
export const ACKNOWLEDGE = "usher.dev/acknowledge";

/** The keys and domains that an object acknowledges, written with commas or spaces between them. */
export function acknowledged(object: JsonObject): ReadonlySet<string> {
  const text = stringAt(object, "metadata", "annotations", ACKNOWLEDGE) ?? "";
  return new Set(text.split(/[,\s]+/).filter((part) => part !== ""));
}
