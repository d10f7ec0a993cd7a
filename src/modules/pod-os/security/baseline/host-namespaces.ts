import type { Check, Failure } from "../check.ts";
import { type CheckedPod, isSet } from "../checked-pod.ts";
import { causesAt, removeFields } from "../containers.ts";

const FIELDS = ["hostNetwork", "hostPID", "hostIPC"] as const;

/**
 * Pods may not share namespaces with the host.
 *
 * Fields:  spec.hostNetwork, spec.hostPID, spec.hostIPC
 * Allowed: absent, false
 * Fix:     removes the field.
 */
export const hostNamespaces: Check = {
  id: "hostNamespaces",
  level: "baseline",
  os: "any",
  fix: removeFields,
  variants: [
    {
      since: 0,
      fields: FIELDS.map((field) => ({
        scope: "pod",
        path: [field],
        allowed: [null, false],
        forbidden: [true],
      })),
      cel: { pod: FIELDS.map((field) => `!object.spec.?${field}.orValue(false)`).join(" && ") },
      evaluate: evaluateHostNamespaces,
    },
  ],
};

function evaluateHostNamespaces({ spec }: CheckedPod): Failure | undefined {
  if (!isShared(spec["hostNetwork"]) && !isShared(spec["hostPID"]) && !isShared(spec["hostIPC"]))
    return undefined;
  const shared = FIELDS.filter((field) => isShared(spec[field]));
  return {
    reason: "host namespaces",
    detail: shared.map((field) => `${field}=true`).join(", "),
    causes: causesAt(
      shared.map((field) => ["spec", field]),
      "must be false or absent",
    ),
  };
}

const isShared = (value: Parameters<typeof isSet>[0]): boolean => isSet(value) && value !== false;
