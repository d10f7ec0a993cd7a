import { canonical, type JsonObject, own } from "../json.ts";
import { labelsOf, namespaceOf } from "../kubernetes/object.ts";
import type { PreparedWorld } from "./prepared-world.ts";

/** One text for pods that no filter can tell apart. */
export function podClass(pod: JsonObject, _world: PreparedWorld): string {
  return canonical([namespaceOf(pod), labelsOf(pod) ?? null, own(pod, "spec") ?? null]);
}
