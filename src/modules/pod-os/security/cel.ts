import type { CheckInCel } from "./check.ts";

/** The security context of a pod, and of a container, as optionals. */
export const POD_CONTEXT = "object.spec.?securityContext";
export const CONTEXT = "c.?securityContext";

/** One rule for the security contexts of the pod and of its containers. */
export function inContexts(rule: (context: string) => string): CheckInCel {
  return { pod: rule(POD_CONTEXT), container: rule(CONTEXT) };
}
