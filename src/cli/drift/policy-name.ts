import type { Assembly } from "../../core/evaluate/assembly.ts";
import { policyName } from "../../core/evaluate/finding.ts";
import type { Module } from "../../core/module/module.ts";
import { didYouMean } from "../../core/policy/suggest.ts";
import { CallError } from "../exit.ts";
import type { WorkloadStatus } from "./read.ts";

/** `ClusterPodSchedulingPolicy/etcd-pool` as people write it: `etcd-pool`; `shop/etcd-pool` where it is in a namespace. */
export function shortName(policy: string): string {
  return policy.slice(policy.indexOf("/") + 1);
}

/** The workloads that have to do with a policy, with just that. A name that nobody knows is a slip. */
export function ofPolicy(
  wanted: string,
  workloads: readonly WorkloadStatus[],
  module: Module,
  assembly: Assembly,
): WorkloadStatus[] {
  const isWanted = (policy: string) => policy === wanted || shortName(policy) === wanted;
  const found = workloads
    .map((one) => ({ ...one, carries: one.carries.filter(({ policy }) => isWanted(policy)) }))
    .filter(({ carries }) => carries.length > 0);
  if (found.length > 0) return found;
  const carried = workloads.flatMap(({ carries }) => carries.map(({ policy }) => shortName(policy)));
  const standing = [...assembly.policies(module.name)].map(({ ref }) => policyName(ref));
  if (standing.includes(wanted.replace(/^[A-Z]\w*\//, ""))) return [];
  const names = [...new Set([...standing, ...carried])];
  const hint = didYouMean(wanted, names);
  throw new CallError(
    `there is no policy ${wanted}, and no workload here carries anything of one${hint === undefined ? "" : `; ${hint}`}`,
  );
}
