import type { ObjectReference } from "../../../../core/decision/finding.ts";
import type { AdmissionRequest } from "../../../../core/decision/request.ts";
import { type JsonObject, stringAt } from "../../../../core/json.ts";
import { controllerOf } from "../../../../core/kubernetes/object.ts";
import type { View } from "../../../../core/view/view.ts";
import type { PodSecurityConfiguration } from "../../configuration.ts";

/** The exemptions of a request from all three modes. The values are those of the audit annotation. */
export type Exemption = "namespace" | "user" | "runtimeClass";

export function exemptRequest(
  { namespace, userInfo: { username } }: AdmissionRequest,
  configuration: PodSecurityConfiguration | undefined,
): Exemption | undefined {
  if (configuration?.exemptions?.namespaces?.includes(namespace)) return "namespace";
  return configuration?.exemptions?.usernames?.includes(username) ? "user" : undefined;
}

export function exemptPod(
  spec: JsonObject | undefined,
  configuration: PodSecurityConfiguration | undefined,
): Exemption | undefined {
  const name = stringAt(spec, "runtimeClassName") ?? "";
  return name !== "" && configuration?.exemptions?.runtimeClasses?.includes(name)
    ? "runtimeClass"
    : undefined;
}

/**
 * The object of a refusal's event: the controlling owner, else the namespace; the event is in the namespace, where its
 * users look. The refused object will not exist.
 */
export function ownerOf({ object, namespace }: AdmissionRequest, view: View): ObjectReference {
  const owner = object === undefined ? undefined : controllerOf(object);
  if (owner !== undefined) return { ...owner, namespace };
  const uid = stringAt(view.get("namespaces", "", namespace), "metadata", "uid");
  return {
    apiVersion: "v1",
    kind: "Namespace",
    name: namespace,
    namespace,
    ...(uid === undefined ? {} : { uid }),
  };
}
