// The heart without a network: an assembly with so many policies, in this process.
import { assembleFor } from "../src/cli/source/source.ts";
import type { Assembly } from "../src/core/evaluate/assembly.ts";
import type { JsonObject } from "../src/core/json.ts";
import { kindResource } from "../src/core/policy/kind.ts";
import type { Source } from "../src/core/view/source.ts";
import type { Change } from "../src/core/view/view.ts";
import { clusterPodSchedulingPolicy } from "../src/modules/placement/kinds.ts";
import { NAMESPACE, NAMESPACE_OBJECT, policy, tenPolicies } from "./policies.ts";

export function policyChange(object: JsonObject & { readonly metadata: { readonly name: string } }): Change {
  return {
    resource: kindResource(clusterPodSchedulingPolicy),
    namespace: "",
    name: object.metadata.name,
    object,
  };
}

export function assemblyWith(policies: number): Assembly {
  const assembly = assembleFor({});
  assembly.apply([
    { resource: "namespaces", namespace: "", name: NAMESPACE, object: NAMESPACE_OBJECT },
    ...Array.from({ length: policies }, (_, i) => policyChange(policy(i))),
    ...tenPolicies().map(policyChange),
  ]);
  return assembly;
}

/** A source that has been read and to which nothing happens. Nothing in the load needs a fact. */
export function stillSource(assembly: Assembly): Source {
  return {
    assembly,
    ready: true,
    fetch: () => Promise.reject(new Error("the bench needs no facts")),
    commit: () => Promise.reject(new Error("the bench commits nothing")),
    stop: () => Promise.resolve(),
  };
}
