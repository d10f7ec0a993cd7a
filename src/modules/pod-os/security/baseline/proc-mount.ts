import type { Check, Variant } from "../check.ts";
import { forbiddenProcMounts, PROC_MOUNT_FIELDS } from "../proc-mounts.ts";

const evaluate: Variant["evaluate"] = forbiddenProcMounts;

/**
 * The default masks of /proc stay.
 *
 * Fields:  spec.{containers,initContainers,ephemeralContainers}[*].securityContext.procMount
 * Allowed: absent, Default; from v1.35 anything in a pod with `hostUsers: false`
 * Fix:     removes the field.
 */
export const procMount: Check = {
  id: "procMount",
  level: "baseline",
  os: "linux",
  variants: [
    { since: 0, fields: PROC_MOUNT_FIELDS, evaluate },
    { since: 35, skips: "userNamespace", fields: PROC_MOUNT_FIELDS, evaluate },
  ],
};
