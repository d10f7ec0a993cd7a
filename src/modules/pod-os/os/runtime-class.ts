import { resourceName } from "../../../core/decision/request.ts";
import { type Json, type JsonObject, stringAt } from "../../../core/json.ts";
import type { Read } from "../../../core/module/module.ts";
import type { View } from "../../../core/view/view.ts";

/** The API server puts the node selector of a RuntimeClass into pods, but not into templates. */
export const RUNTIME_CLASSES: Read = {
  resource: "runtimeclasses",
  group: "node.k8s.io",
  version: "v1",
  kind: "RuntimeClass",
  scope: "Cluster",
  keep: [["scheduling", "nodeSelector"]],
  optional: true,
  why: "know the OS of a RuntimeClass",
};

const RESOURCE = resourceName(RUNTIME_CLASSES);

export function runtimeClassOf(view: View, spec: Json | undefined): JsonObject | undefined {
  const name = stringAt(spec, "runtimeClassName") ?? "";
  return name === "" ? undefined : view.get(RESOURCE, "", name);
}
