// The differences between the releases of Kubernetes: the filters and their order.
import { atLeast, type KubernetesVersion } from "../kubernetes/versions.ts";
import type { Filter } from "./filter.ts";
import { DYNAMIC_RESOURCES } from "./filters/dynamic-resources.ts";
import { INTER_POD_AFFINITY } from "./filters/inter-pod-affinity.ts";
import { NODE_AFFINITY } from "./filters/node-affinity.ts";
import { NODE_DECLARED_FEATURES } from "./filters/node-declared-features.ts";
import { NODE_NAME } from "./filters/node-name.ts";
import { NODE_PORTS } from "./filters/node-ports.ts";
import { NODE_RESOURCES_FIT } from "./filters/node-resources-fit.ts";
import { NODE_UNSCHEDULABLE } from "./filters/node-unschedulable.ts";
import { NODE_VOLUME_LIMITS } from "./filters/node-volume-limits.ts";
import { POD_TOPOLOGY_SPREAD } from "./filters/pod-topology-spread.ts";
import { SCHEDULER } from "./filters/scheduler.ts";
import { SCHEDULING_GATES } from "./filters/scheduling-gates.ts";
import { TAINT_TOLERATION } from "./filters/taint-toleration.ts";
import { VOLUME_BINDING } from "./filters/volume-binding.ts";
import { VOLUME_RESTRICTIONS } from "./filters/volume-restrictions.ts";
import { VOLUME_ZONE } from "./filters/volume-zone.ts";

/** The releases whose filters are known. */
export const RELEASES = ["1.33", "1.34", "1.35", "1.36", "1.37"] as const;
export type KubernetesRelease = (typeof RELEASES)[number];

export const NEWEST_RELEASE: KubernetesRelease = "1.37";

/** The nearest known release; the newest if the version is unknown. */
export function releaseOf(version: KubernetesVersion | undefined): KubernetesRelease {
  if (version === undefined) return NEWEST_RELEASE;
  return RELEASES.findLast((release) => atLeast(version, minorOf(release))) ?? RELEASES[0];
}

export function minorOf(release: KubernetesRelease): number {
  return Number(release.slice(2));
}

/** The minor version since which NodeName runs before NodeUnschedulable. */
const NAME_FIRST_SINCE = 37;
/** The minor version since which resource claims are on by default. */
const RESOURCE_CLAIMS_SINCE = 34;
const DECLARED_FEATURES_SINCE = 36;

/** In the scheduler's order. */
export function filtersOf(release: KubernetesRelease): readonly Filter[] {
  const minor = minorOf(release);
  return [
    SCHEDULER,
    SCHEDULING_GATES,
    ...(minor >= NAME_FIRST_SINCE ? [NODE_NAME, NODE_UNSCHEDULABLE] : [NODE_UNSCHEDULABLE, NODE_NAME]),
    TAINT_TOLERATION,
    NODE_AFFINITY,
    NODE_PORTS,
    NODE_RESOURCES_FIT,
    VOLUME_RESTRICTIONS,
    NODE_VOLUME_LIMITS,
    VOLUME_BINDING,
    VOLUME_ZONE,
    POD_TOPOLOGY_SPREAD,
    INTER_POD_AFFINITY,
    ...(minor >= RESOURCE_CLAIMS_SINCE ? [DYNAMIC_RESOURCES] : []),
    ...(minor >= DECLARED_FEATURES_SINCE ? [NODE_DECLARED_FEATURES] : []),
  ];
}
