import type { CommandCall } from "../../module/command.ts";
import { policyName } from "../../policy/policy-ref.ts";
import { didYouMean } from "../../suggest.ts";
import type { WorkloadStatus } from "./scan-workloads.ts";

/** `ClusterPodSchedulingPolicy/etcd-pool` as users write it: `etcd-pool`, or `shop/etcd-pool` in a namespace. */
export function shortName(policy: string): string {
  return policy.slice(policy.indexOf("/") + 1);
}

/** The workloads of one policy, with only its injections. A policy that neither exists nor left anything is an error. */
export function ofPolicy(
  wanted: string,
  workloads: readonly WorkloadStatus[],
  { assembly, module }: CommandCall,
): WorkloadStatus[] | { readonly wrong: string } {
  const isWanted = (policy: string) => policy === wanted || shortName(policy) === wanted;
  const found = workloads
    .map((one) => ({ ...one, carries: one.carries.filter(({ policy }) => isWanted(policy)) }))
    .filter(({ carries }) => carries.length > 0);
  if (found.length > 0) return found;
  const existing = [...assembly.policies(module.name)].map(({ ref }) => policyName(ref));
  if (existing.includes(wanted.replace(/^[A-Z]\w*\//, ""))) return [];
  const injected = workloads.flatMap(({ carries }) => carries.map(({ policy }) => shortName(policy)));
  const hint = didYouMean(wanted, [...new Set([...existing, ...injected])]);
  const suffix = hint === undefined ? "" : `; ${hint}`;
  return { wrong: `policy ${wanted} not found, and no workload has an injection of it${suffix}` };
}
