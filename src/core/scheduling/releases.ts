// What differs between the releases of Kubernetes: the order of the filters, and which there are.
import { atLeast, type KubernetesVersion } from "../kubernetes/versions.ts";
import type { Filter } from "./filter.ts";
import { NODE_AFFINITY } from "./filters/node-affinity.ts";
import { NODE_NAME } from "./filters/node-name.ts";
import { NODE_UNSCHEDULABLE } from "./filters/node-unschedulable.ts";
import { SCHEDULING_GATES } from "./filters/scheduling-gates.ts";
import { TAINT_TOLERATION } from "./filters/taint-toleration.ts";

/** The releases whose filters are known. */
export const RELEASES = ["1.33", "1.34", "1.35", "1.36", "1.37"] as const;
export type KubernetesRelease = (typeof RELEASES)[number];

export const NEWEST_RELEASE: KubernetesRelease = "1.37";

/** The nearest release that is known; the newest where the version is not. */
export function releaseOf(version: KubernetesVersion | undefined): KubernetesRelease {
  if (version === undefined) return NEWEST_RELEASE;
  return RELEASES.findLast((release) => atLeast(version, minorOf(release))) ?? RELEASES[0];
}

export function minorOf(release: KubernetesRelease): number {
  return Number(release.slice(2));
}

/** In the order in which the scheduler asks them. */
export function filtersOf(release: KubernetesRelease): readonly Filter[] {
  const first = minorOf(release) >= 37 ? [NODE_NAME, NODE_UNSCHEDULABLE] : [NODE_UNSCHEDULABLE, NODE_NAME];
  return [SCHEDULING_GATES, ...first, TAINT_TOLERATION, NODE_AFFINITY];
}
