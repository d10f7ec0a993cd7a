import type { JsonObject } from "../../../core/json.ts";
import { stringAt } from "../../../core/json.ts";

/** The annotation by which the author of an object confirms what is otherwise refused. */
export const ACKNOWLEDGE = "usher.dev/acknowledge";

/** The keys and domains that an object acknowledges, separated by commas or spaces. */
export function acknowledged(object: JsonObject): ReadonlySet<string> {
  const text = stringAt(object, "metadata", "annotations", ACKNOWLEDGE) ?? "";
  return new Set(text.split(/[,\s]+/).filter((part) => part !== ""));
}
