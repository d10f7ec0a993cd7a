import type { AdmissionRequest } from "../../../core/evaluate/request.ts";
import { type JsonObject, stringAt } from "../../../core/json.ts";
import type { PodSecurityConfiguration } from "../configuration.ts";

/** What exempts a request from all three modes. The values are those of the audit annotation. */
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
