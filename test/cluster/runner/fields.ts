import { at, type Json, stringAt } from "../../../src/core/json.ts";
import type { Pod } from "./pod-spec.ts";

/** The value of a fieldRef: `metadata.name`, `metadata.labels['app']`, `spec.nodeName`, `status.podIP` and their like. */
export function fieldValue(pod: Pod, fieldPath: string, podIP: string, hostIP: string): string {
  if (fieldPath === "status.podIP" || fieldPath === "status.podIPs") return podIP;
  if (fieldPath === "status.hostIP" || fieldPath === "status.hostIPs") return hostIP;
  const keyed = /^metadata\.(labels|annotations)\['(.*)'\]$/.exec(fieldPath);
  if (keyed) return stringAt(pod, "metadata", keyed[1] ?? "", keyed[2] ?? "") ?? "";
  const value: Json | undefined = at(pod, ...fieldPath.split("."));
  return typeof value === "string" ? value : "";
}
