import type { Check } from "../check.ts";
import { removeFields } from "../containers.ts";
import { evaluateProcMounts, PROC_MOUNT_FIELDS, PROC_MOUNTS_IN_CEL } from "../proc-mounts.ts";

/**
 * The default masks of /proc stay, in user namespaces too.
 *
 * Fields:  spec.{containers,initContainers,ephemeralContainers}[*].securityContext.procMount
 * Allowed: absent, Default
 * Fix:     removes the field.
 *
 * Until v1.34 the check of baseline says the same.
 */
export const procMountRestricted: Check = {
  id: "procMount_restricted",
  level: "restricted",
  overrides: ["procMount"],
  os: "linux",
  fix: removeFields,
  variants: [{ since: 35, fields: PROC_MOUNT_FIELDS, cel: PROC_MOUNTS_IN_CEL, evaluate: evaluateProcMounts }],
};
