import type { JsonObject } from "../../../core/json.ts";
import type { CompiledSelector } from "../../../core/kubernetes/selectors/label-selector.ts";
import type { PolicyRef } from "../../../core/policy/policy-ref.ts";
import type { EntryIndex } from "./principals.ts";

/** From weak to strong. */
export const MODES = ["Disable", "Inform", "Enable"] as const;
export type Mode = (typeof MODES)[number];

/** The only group that a Scheduler names, and the one that mastersSchedulable affects. */
export const CONTROL_PLANE = "ControlPlane";

export type GroupOrigin = "built-in" | "file" | "inline" | "NodeSchedulingPolicy" | "Scheduler";

/** Whether an entry lets a subject assign pods to nodes of the group, lets pods be assigned to them, or both. */
export type Role = "actor" | "pod" | "both";

export const USER_LISTS = ["authorizedUsers", "exactUsers", "assigners", "workloads"] as const;
export const EMERGENCY_LISTS = ["emergencyUsers", "emergencyGroups"] as const;
export type EntryList = (typeof USER_LISTS)[number] | "authorizedGroups" | (typeof EMERGENCY_LISTS)[number];

/** One entry of a list, read. */
export interface GroupEntry {
  /** As it is written. */
  readonly entry: string;
  readonly list: EntryList;
  readonly as: Role;
  readonly origin: GroupOrigin;
  /** `prefix`: a service account whose namespace ends with `*`. */
  readonly kind: "user" | "serviceAccount" | "prefix" | "group";
  /** For service accounts; for a prefix the beginning of the namespace. Empty for users and groups. */
  readonly namespace: string;
  /** Of the service account, the user or the group. */
  readonly name: string;
}

export const ACKNOWLEDGEMENTS = ["AllNodes", "NoOtherNodes"] as const;

/** The options of a group beside its name, selector, mode and lists, with defaults filled in. */
export interface GroupOptions {
  readonly serviceAccountScope: "Namespace" | "Exact";
  /** The action for a pod that could only run on protected nodes, before it is assigned to one. */
  readonly earlyRefusal: "Deny" | "Warn";
  readonly checkRequesterOnSelection: boolean;
  /** Defaults to true in Enable. */
  readonly protectNodeLabels: boolean;
  readonly guardAccessOnProtectedNodes: boolean;
  readonly newNodeGraceSeconds: number;
  readonly rbac: boolean;
  /** In Enable; in the other modes nothing is steered. */
  readonly steering: "Affinity" | "DropToleration" | "Disabled";
  /** For assignments and bindings. @default Fail, unless the fallback covers them like the webhook */
  readonly failurePolicy?: "Fail" | "Ignore";
  readonly acknowledge: readonly (typeof ACKNOWLEDGEMENTS)[number][];
}

/** A NodeGuardOverride that is active at the time of a request. */
export interface Override {
  readonly name: string;
  readonly group: string;
  readonly mode: "Inform" | "Disable";
  /** Milliseconds since 1970. */
  readonly from: number;
  readonly until: number;
  readonly reason: string;
  /** The user who created it; empty if usher was down. */
  readonly grantedBy: string;
}

/** A group of protected nodes as it counts now: all sources together. */
export interface Group extends GroupOptions {
  readonly name: string;
  readonly labelSelector: CompiledSelector;
  /** As it is written. */
  readonly selector: JsonObject;
  /** The mode of the first source that has one, without overrides and without the cap of mastersSchedulable. */
  readonly mode: Mode;
  /** The mode that counts for requests. */
  readonly effectiveMode: Mode;
  /** Why the effective mode is what it is, for users. */
  readonly because: string;
  /** The NodeSchedulingPolicy that counts, if there is one: groups are not objects, and events refer to it instead. */
  readonly policy?: PolicyRef;
  /** In force now: requests that it admits are audited with `rule=override`. */
  readonly override?: Override;
  readonly entries: readonly GroupEntry[];
  /** emergencyUsers and emergencyGroups: they vouch for the pod, and only if they assign its node at CREATE. */
  readonly emergency: readonly GroupEntry[];
  /** Entries by their matches. */
  readonly index: EntryIndex;
  readonly emergencyIndex: EntryIndex;
}

/** Whether pods are steered off the group's nodes. */
export function steers({ effectiveMode, steering }: Pick<Group, "effectiveMode" | "steering">): boolean {
  return effectiveMode === "Enable" && steering !== "Disabled";
}
