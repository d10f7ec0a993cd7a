import type { z } from "zod";
import type { Result } from "../decision/decision.ts";
import type { Draft } from "../decision/draft.ts";
import type { Facts } from "../decision/need.ts";
import type { PatchOperation } from "../decision/patch.ts";
import type { AdmissionRequest } from "../decision/request.ts";
import type { Gate, Gates } from "../installation/gates.ts";
import type { Installation } from "../installation/installation.ts";
import {
  configuredValues,
  holds,
  PREVIEWS_POLICIES,
  type SettingCondition,
} from "../installation/setting-condition.ts";
import type { JsonObject } from "../json.ts";
import type { WorkloadKind, WorkloadTable } from "../kubernetes/workloads.ts";
import type { Path } from "../path.ts";
import type { Kind, StateKind } from "../policy/kind.ts";
import type { Mutations, Weakening } from "../policy/mutants.ts";
import type { PolicyRef } from "../policy/policy-ref.ts";
import type { Problem } from "../policy/problem.ts";
import type { Index, View } from "../view/view.ts";
import type { Assembly } from "./assembly.ts";
import type { CompileContext, CompiledPolicy } from "./compile.ts";
import type { DashboardParts } from "./dashboard.ts";
import type { Hook } from "./hook.ts";
import type { Metric } from "./metric.ts";
import type { Operator } from "./operator.ts";
import type { Reconciler } from "./reconciler.ts";
import type { Standing } from "./standing.ts";

/** The objects that a module must see of the cluster. Shells keep only those. */
export interface Read {
  /** `namespaces`, `nodes` */
  readonly resource: string;
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly scope: "Cluster" | "Namespaced";
  /** The fields to keep of each object beside its name; changes of others are ignored. */
  readonly keep: readonly Path[];
  /** Reduces each object further than `keep` can say: nothing else of it stays in memory. Idempotent. @default no further */
  readonly reduce?: (object: JsonObject) => JsonObject;
  readonly indexes?: readonly Index[];
  readonly labelSelector?: string;
  /** Only the object of this name; usher has no permission on others. @default all */
  readonly name?: string;
  /** Only whether it is served: no object is read, and no right is needed. */
  readonly presence?: true;
  /** Only the leader needs it. */
  readonly leaderOnly?: boolean;
  /** The cluster may not serve it. */
  readonly optional?: boolean;
  /** Read only while these hold. @default always */
  readonly when?: readonly SettingCondition[];
  /** The reason of the read, for the table of permissions. @default to evaluate requests */
  readonly why?: string;
}

/** The resources that most modules read. */
export const NODES = {
  resource: "nodes",
  group: "",
  version: "v1",
  kind: "Node",
  scope: "Cluster",
} as const satisfies Partial<Read>;
export const NAMESPACES = {
  resource: "namespaces",
  group: "",
  version: "v1",
  kind: "Namespace",
  scope: "Cluster",
} as const satisfies Partial<Read>;

/** The reads of these modules in an installation. */
export function readsOf({ modules, installation, gates }: Declarations): Read[] {
  const values = configuredValues(installation, gates);
  return modules.flatMap(({ reads }) => reads).filter(({ when }) => holds(when, values));
}

/** Modules in an installation: an assembly is such. */
export interface Declarations {
  readonly modules: readonly Module[];
  readonly installation: Installation;
  readonly gates: Gates;
}

/** Why a policy, or one rule of it, did or did not apply. A setting or a level of a namespace counts as a policy. */
export interface TraceEntry {
  readonly policy: PolicyRef;
  /** `limits[0]`: one rule of the policy. @default the policy as a whole */
  readonly rule?: string;
  readonly applies: "applies" | "not" | "partly" | "refuses" | "failed";
  readonly why: string;
}

/** All inputs of an evaluation. */
export interface Context {
  readonly request: AdmissionRequest;
  readonly draft: Draft;
  readonly view: View;
  readonly facts: Facts;
  /** Milliseconds since 1970, provided by the shell: the core reads no clock. */
  readonly now: number;
  readonly installation: Installation;
  readonly gates: Gates;
  /** The hook that is called. */
  readonly hook: string;
  /**
   * Present if a trace is requested: every policy, group, rule, level, exception and limit that the module reads is
   * then reported, with the reason. A module that runs reports at least one.
   */
  readonly trace?: (entry: TraceEntry) => void;
}

export interface Evaluator<Policy = unknown> {
  readonly mutate?: (context: Context) => Result;
  readonly validate?: (context: Context) => Result;
  /**
   * Removes and adds policies without assembling all of them again: one change among thousands costs as much as one
   * among ten. Must leave the evaluator as `assemble` would have built it. @default assembles all policies again
   */
  readonly update?: (removed: readonly Policy[], added: readonly Policy[]) => void;
}

/** A user-visible error code, and its text in `usher help`. */
export interface Code {
  readonly code: string;
  readonly title: string;
  readonly meaning: string;
  readonly remedy: string;
}

interface Grant {
  readonly verbs: readonly ("get" | "list" | "patch" | "create")[];
  /** For the table of permissions: completes "to". */
  readonly why: string;
  /** @default always */
  readonly when?: readonly SettingCondition[];
}

/** A module's needs or writes beyond its constant reads: usher's permissions are limited to these. */
export interface Access extends Grant {
  readonly group: string;
  readonly resource: string;
}

/** For modules whose policies affect new pods: see `blastRadius`. */
export const PREVIEW_ACCESS = {
  group: "",
  resource: "pods",
  verbs: ["list"],
  why: "say what a policy changes when it is written",
  when: [PREVIEWS_POLICIES],
} as const satisfies Access;

/** The same for each kind of a list of the configuration. */
export interface AccessToEach extends Grant {
  readonly each: "workloads";
}

/** Another system that does the same: if its webhook still exists, both would change one object. */
export interface Predecessor {
  /** Of a webhook configuration, mutating or validating. */
  readonly name: string;
  /** The consequence while both exist, and the remedy. */
  readonly meaning: string;
}

/** A resource with objects that a module manages. */
export interface ManagedResource {
  readonly group: string;
  readonly version: string;
  readonly resource: string;
  readonly kind: string;
  readonly scope: "Cluster" | "Namespaced";
}

/** Objects that follow from the view: the leader creates, repairs and deletes them, and an uninstall removes them first. */
export interface ManagedObjects {
  /**
   * Policies of the API server whose bindings select the webhook configuration with `STANDBY_LABEL: active` as their
   * parameter, which there is only while no replica is ready. @default in force always
   */
  readonly standby?: true;
  /** All that `desired` may have. */
  readonly resources: readonly ManagedResource[];
  /** For the table of permissions: completes "to". */
  readonly why: string;
  /** Only while these hold does usher have permission on them, and reconcile them. @default always */
  readonly when?: readonly SettingCondition[];
  /** `now`: milliseconds since 1970. Called every few seconds, so that time-dependent objects follow. */
  readonly desired: (
    view: View,
    installation: Installation,
    gates: Gates,
    now: number,
  ) => readonly JsonObject[];
}

/** A mark that a module puts on objects of others and that must not stay there once usher is uninstalled. */
export interface Cleanup {
  readonly group: string;
  readonly version: string;
  readonly resource: string;
  readonly kind: string;
  /** `the taint usher.dev/starting` */
  readonly what: string;
  /** Removes it from an object of a cluster-scoped kind; empty if the object does not have it. */
  readonly patch: (object: JsonObject) => readonly PatchOperation[];
  /** The command that removes it from one object, or with `--all` from every one. */
  readonly byHand: (name: string) => string;
}

/** Declared by a module whose injections into stored workloads can be compared with current policies, and reapplied. */
export interface DriftScan {
  /** An annotation that requests, with any value, that the module replaces its injections with current ones. */
  readonly annotation: string;
  /** Why the object is not changed, regardless of the policies; `undefined` if it may be. */
  readonly leftAlone: (
    object: JsonObject,
    workload: WorkloadKind,
    workloads: WorkloadTable,
  ) => string | undefined;
  /** An immutable object as it would be created now, so that missing injections can be reported. */
  readonly asNew?: (
    object: JsonObject,
    workload: WorkloadKind,
    workloads: WorkloadTable,
  ) => JsonObject | undefined;
  /** An object as it would be created now, if enforcement might have been bypassed; `undefined` if it need not be evaluated. */
  readonly judged?: (object: JsonObject, workload: WorkloadKind) => JsonObject | undefined;
  /** The kinds that are scanned. @default all workloads of the installation */
  readonly kinds?: (installation: Installation) => readonly WorkloadKind[];
  /** Selects the stored objects of a kind that are still mutable; the leader reads no others. @default all */
  readonly fieldSelector?: (workload: WorkloadKind) => string | undefined;
}

/** A policy of a module beside the others, as it is written and as `prepare` made it. */
export interface WrittenPolicy<Policy = unknown> {
  readonly object: JsonObject;
  readonly policy: Policy;
}

/** A problem of one of several policies: the one at `index`. */
export interface PolicyProblem {
  readonly index: number;
  readonly problem: Problem;
}

/** The contract of a module: data and pure functions. Shells know modules only by this. */
export interface Module<Policy = unknown> {
  /** A DNS label. */
  readonly name: string;
  readonly summary: string;
  readonly kinds: readonly Kind<Policy>[];
  /** Kinds for usher's own state. @default none */
  readonly stateKinds?: readonly StateKind[];
  readonly reads: readonly Read[];
  /**
   * When to call it. `policies` are the prepared ones, as for `assemble`. Runs again only after a change of its kinds,
   * its reads, served resources or the API server's version.
   */
  readonly hooks: (
    policies: readonly Policy[],
    view: View,
    installation: Installation,
    gates: Gates,
  ) => readonly Hook[];
  /** Only indexes. If the evaluator has no `update`, it runs again whenever a policy has changed. */
  readonly assemble: (
    policies: readonly Policy[],
    installation: Installation,
    gates: Gates,
  ) => Evaluator<Policy>;
  readonly reconciler?: Reconciler;
  /** What is wrong between policies, which the check of one alone can't see: contradictions, and policies that never count. @default nothing */
  readonly lint?: (policies: readonly WrittenPolicy<Policy>[]) => readonly PolicyProblem[];
  /**
   * Its policies as objects that the API server evaluates by itself, each with the part that is left out. Every policy is reported.
   * @default none of its policies is compiled
   */
  readonly compile?: (context: CompileContext<Policy>) => readonly CompiledPolicy[];
  /** If its injections into workloads can be compared with current policies, and reapplied. */
  readonly driftScan?: DriftScan;
  /** What the dashboard shows of it beside policies. @default nothing */
  readonly dashboard?: DashboardParts;
  /**
   * Its settings for commands that ask what would happen: it then also evaluates for the component that does so in the
   * cluster. @default its own
   */
  readonly foresightSettings?: (settings: JsonObject | undefined) => JsonObject;
  /**
   * The effect of its policies on existing objects and users, in the order of names; only those with an effect. A
   * generator, so that a caller can interleave other work. @default nothing
   */
  readonly standing?: (assembly: Assembly) => Iterable<Standing>;
  /** How its policies are weakened one thing at a time, so that a test suite can show that it notices. @default not at all */
  readonly mutations?: readonly Mutations[];
  /** The same of its settings, which decide as policies do. @default not at all */
  readonly settingMutations?: Weakening;
  /** The resources of its needs and planned writes, for usher's permissions. */
  readonly access?: readonly (Access | AccessToEach)[];
  /** The schema of its settings, under its name in `spec.modules` of the configuration. Strict. @default no settings */
  readonly settings?: z.ZodType;
  /** @default none */
  readonly managed?: ManagedObjects;
  /** For taints that this module sets: usher's own pods must tolerate them. @default none */
  readonly tolerations?: (installation: Installation) => readonly JsonObject[];
  /** Taken off when usher is uninstalled. @default nothing */
  readonly cleanup?: (installation: Installation) => readonly Cleanup[];
  readonly gates?: readonly Gate[];
  /** Counters that its decisions increment, and gauges that its reconciler computes. */
  readonly metrics?: readonly Metric[];
  /** Checked when usher is installed and while it runs; reported, never changed. */
  readonly predecessors?: readonly Predecessor[];
  readonly codes?: readonly Code[];
  /** Manages an operand of a custom resource, separate from usher: `usher operator MODULE`. @default none */
  readonly operator?: Operator;
}

/**
 * Declares a module. Shells handle modules of all policy types alike, so the type is erased here, in one place;
 * `assemble` only ever gets policies of this module's own `prepare`.
 */
export function defineModule<Policy>(module: Module<Policy>): Module {
  return module as unknown as Module;
}
