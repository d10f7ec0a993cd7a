import type { Json } from "../json.ts";
import type { Path } from "../path.ts";

/** Which policy, in which state of it. Offline there may be neither uid nor generation. */
export interface PolicyRef {
  readonly kind: string;
  /** Absent for cluster-scoped policies. */
  readonly namespace?: string;
  readonly name: string;
  readonly uid?: string;
  readonly generation?: number;
  /** Known from an object's note alone: nobody counts what came of it, for anyone can write a note. */
  readonly gone?: true;
}

/**
 * What came of one rule of one policy for one request.
 *
 * - `applied`: an edit was made;
 * - `same`: the object said so already;
 * - `skipped`: a part was left out, the message says why;
 * - `violated`: a reason to refuse;
 * - `would-violate`: the same, where the policy only informs;
 * - `authorized`: let in by a named entry;
 * - `failed`: could not be judged; what followed is the policy's failure mode.
 */
export type FindingOutcome =
  | "applied"
  | "same"
  | "skipped"
  | "violated"
  | "would-violate"
  | "authorized"
  | "failed";

/** An event about the object of the request, or about `regarding` where that object will not exist. */
export interface FindingEvent {
  readonly type: "Normal" | "Warning";
  /** A CamelCase word that can be searched. */
  readonly reason: string;
  readonly regarding?: { readonly kind: string; readonly namespace?: string; readonly name: string };
}

/** The atom of every explanation: warnings, causes, audit values, events, metrics and tallies all follow from it. */
export interface Finding {
  readonly policy?: PolicyRef;
  readonly rule: string;
  readonly outcome: FindingOutcome;
  /** A stable code such as `USHER-P01`, explained by `usher help`. */
  readonly code?: string;
  readonly path?: Path;
  /** With `same`, where the path is a list: the elements that it has already, as the policy has them. */
  readonly elements?: readonly Json[];
  /** One sentence for a person: what, where, and what to do next. */
  readonly message: string;
  /** Shown to the client as a warning; the higher rank comes first. */
  readonly warn?: number;
  /** An audit annotation; the key is prefixed with the module's name. */
  readonly audit?: { readonly key: string; readonly value: string };
  readonly event?: FindingEvent;
}

/** A finding with the name of the module that made it. */
export interface ModuleFinding extends Finding {
  readonly module: string;
}

/** `etcd-pool`, or `shop/etcd-pool` for a namespaced policy. */
export function policyName(policy: PolicyRef): string {
  return policy.namespace === undefined ? policy.name : `${policy.namespace}/${policy.name}`;
}

/** Unique among all policies of a module: `ClusterPodSchedulingPolicy/etcd-pool`. */
export function policyKey(policy: PolicyRef): string {
  return `${policy.kind}/${policyName(policy)}`;
}
