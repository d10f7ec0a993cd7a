import type { JsonObject } from "../../../core/json.ts";
import { resolvePodOS } from "./resolve.ts";

/** Whether the scheduler chooses only nodes of this OS for the pod: it goes neither by `spec.os` nor by labels of the pod. */
export function selectsOS(spec: JsonObject, os: string, runtimeClass?: JsonObject): boolean {
  const { os: _os, ...rest } = spec;
  return resolvePodOS({ spec: rest }, runtimeClass).os === os;
}
