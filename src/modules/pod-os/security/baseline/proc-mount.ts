import type { Check } from "../check.ts";
import { removeFields } from "../containers.ts";
import { evaluateProcMounts, PROC_MOUNT_FIELDS, PROC_MOUNTS_IN_CEL } from "../proc-mounts.ts";

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
  fix: removeFields,
  variants: [
    { since: 0, fields: PROC_MOUNT_FIELDS, cel: PROC_MOUNTS_IN_CEL, evaluate: evaluateProcMounts },
    {
      since: 35,
      skips: "userNamespace",
      fields: PROC_MOUNT_FIELDS,
      cel: PROC_MOUNTS_IN_CEL,
      evaluate: evaluateProcMounts,
    },
  ],
};
