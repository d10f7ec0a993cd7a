import { appArmorProfile } from "./baseline/app-armor-profile.ts";
import { capabilitiesBaseline } from "./baseline/capabilities.ts";
import { hostNamespaces } from "./baseline/host-namespaces.ts";
import { hostPathVolumes } from "./baseline/host-path-volumes.ts";
import { hostPorts } from "./baseline/host-ports.ts";
import { hostProbesAndHostLifecycle } from "./baseline/host-probes.ts";
import { privileged } from "./baseline/privileged.ts";
import { procMount } from "./baseline/proc-mount.ts";
import { seLinuxOptions } from "./baseline/se-linux-options.ts";
import { seccompProfileBaseline } from "./baseline/seccomp-profile.ts";
import { sysctls } from "./baseline/sysctls.ts";
import { windowsHostProcess } from "./baseline/windows-host-process-containers.ts";
import type { Check, Variant } from "./check.ts";
import { allowPrivilegeEscalation } from "./restricted/allow-privilege-escalation.ts";
import { capabilitiesRestricted } from "./restricted/capabilities.ts";
import { procMountRestricted } from "./restricted/proc-mount.ts";
import { runAsNonRoot } from "./restricted/run-as-non-root.ts";
import { runAsUser } from "./restricted/run-as-user.ts";
import { seccompProfileRestricted } from "./restricted/seccomp-profile.ts";
import { restrictedVolumes } from "./restricted/volume-types.ts";

/** All checks of the Pod Security Standards in the order of results: baseline before restricted, each sorted by the bytes of its id. */
export const CHECKS: readonly Check[] = [
  appArmorProfile,
  capabilitiesBaseline,
  hostNamespaces,
  hostPathVolumes,
  hostPorts,
  hostProbesAndHostLifecycle,
  privileged,
  procMount,
  seLinuxOptions,
  seccompProfileBaseline,
  sysctls,
  windowsHostProcess,
  allowPrivilegeEscalation,
  capabilitiesRestricted,
  procMountRestricted,
  restrictedVolumes,
  runAsNonRoot,
  runAsUser,
  seccompProfileRestricted,
];

/** The newest minor version that changes a check. A newer policy, and `latest`, are evaluated as this one. */
export const NEWEST_MINOR = Math.max(...CHECKS.flatMap(({ variants }) => variants.map(({ since }) => since)));

/** A check as it is at one version. */
export interface ActiveCheck {
  readonly check: Check;
  readonly variant: Variant;
}

function activeChecks(level: Check["level"], minor: number): ActiveCheck[] {
  const present = CHECKS.flatMap((check) => {
    const variant = check.variants.findLast(({ since }) => since <= minor);
    return variant === undefined ? [] : [{ check, variant }];
  });
  if (level === "baseline") return present.filter(({ check }) => check.level === "baseline");
  const overridden = new Set(present.flatMap(({ check }) => check.overrides ?? []));
  return present.filter(({ check }) => !overridden.has(check.id));
}

const byMinor = (level: Check["level"]) =>
  Array.from({ length: NEWEST_MINOR + 1 }, (_, minor) => activeChecks(level, minor));

/** The checks of a level by minor version, up to the newest. */
export const ACTIVE_CHECKS: Readonly<Record<Check["level"], readonly (readonly ActiveCheck[])[]>> = {
  baseline: byMinor("baseline"),
  restricted: byMinor("restricted"),
};
