import type { z } from "zod";
import type { Origin } from "../../../core/decision/draft.ts";
import type { Json, JsonObject } from "../../../core/json.ts";
import type { Access } from "../../../core/module/module.ts";
import type { Path } from "../../../core/path.ts";
import type { CelRule } from "../../../core/policy/kind.ts";
import type { Problem } from "../../../core/policy/problem.ts";
import type { Unchanged } from "../../../core/provenance/provenance.ts";
import type { CompiledCriterion } from "./cel.ts";
import type { MergeContext } from "./context.ts";
import type { Report } from "./report.ts";
import type { ComparedPod } from "./unmet.ts";
import type { Size, WorkLimit } from "./work-limit.ts";

/** The value that a policy wants for one criterion. It is prepared for merges once, at the first: most policies never select anything. */
export class CriterionValue<Value = unknown> {
  readonly criterion: Criterion<Value>;
  readonly value: Value;
  #prepared: { readonly value: unknown } | undefined;

  constructor(criterion: Criterion<Value>, value: Value) {
    this.criterion = criterion;
    this.value = value;
  }

  /** The value as `merge` and `unmet` take it. */
  get prepared(): unknown {
    this.#prepared ??= { value: this.criterion.prepare(this.value) };
    return this.#prepared.value;
  }
}

/** All criteria of a policy, in the order of application. Ten thousand policies must stay small: absent criteria take no memory. */
export type Criteria = readonly CriterionValue[];

/** The policy's value for a criterion; `undefined` if it has none. */
export function wantedOf<Value>(criteria: Criteria, criterion: Criterion<Value>): Value | undefined {
  for (const want of criteria) if (want.criterion === criterion) return want.value as Value;
  return undefined;
}

/** Why fields can't be written into an object, by the name of the criterion, each a part of a sentence. */
export interface Limits {
  readonly immutable: Readonly<Partial<Record<string, string>>>;
  /** The criteria that no such object can have, not even a new one. @default none */
  readonly impossible?: readonly string[];
  /** A gated pod: requirements may be appended to existing terms, no term may be added or removed. */
  readonly appendOnly?: true;
}

export const NO_LIMITS: Limits = { immutable: {} };

/** Something that a policy requires and a pod's spec does not have. */
export interface UnmetRequirement {
  /** From the pod's spec. */
  readonly path: Path;
  /** The requirement, in short. */
  readonly wants: string;
  /** The same as a value of the field, if it is one; for a list its elements. */
  readonly value?: Json;
}

/** Where the API server allows a field to be written. Otherwise a reason. */
export interface Mutability {
  readonly daemonSet?: string;
  /** A pod that waits at a scheduling gate, on UPDATE. */
  readonly gatedPod?: string;
  /** A Job that is suspended, on UPDATE. */
  readonly suspendedJob?: string;
  /** Whether the API server lets users change it on a pod without gates. Policies write nothing into such a pod, whatever this says. */
  readonly ungatedPod: boolean;
}

/** Fields of only new objects and templates. */
export const IMMUTABLE: Mutability = {
  gatedPod: "field is immutable on an existing pod",
  suspendedJob: "field is immutable on an existing Job",
  ungatedPod: false,
};

/** Fields that change until the scheduler considers the pod. */
export const MUTABLE_WHILE_GATED: Mutability = { ungatedPod: false };

/**
 * The object that a criterion names. If it is missing, the API server refuses the pod, or a controller deletes and
 * creates it forever.
 */
export interface Reference {
  /** `PriorityClass` */
  readonly kind: string;
  /** `priorityclasses.scheduling.k8s.io` */
  readonly resource: string;
  readonly access: Access;
  /** Why the API server would refuse a pod that names this object; called when it is found. */
  readonly conflict?: (found: Json, name: string, context: ReferenceContext) => CriterionConflict | undefined;
}

/** The inputs for checking a reference. */
export interface ReferenceContext {
  readonly podSpec: Json | undefined;
  /** The nodeSelector of all policies that select the object. */
  readonly wantedLabels: () => ReadonlyMap<string, string>;
}

export interface CriterionConflict {
  readonly code: string;
  readonly why: string;
}

/** The stored object, as far as injections are read from it. */
export interface Stored {
  readonly podSpec: Json | undefined;
  /** The path of the pod's spec. */
  readonly spec: Path;
  readonly has: Unchanged;
}

/**
 * One field of a pod's spec that policies set: how it is written in a policy, merged into a pod, enforced, and taken back. Conflicts, the
 * work budget, provenance and findings are handled for all of them by the functions that walk the list in criteria.ts.
 */
export interface Criterion<Value = unknown, Prepared = unknown> {
  /** `requiredNodeAffinity` */
  readonly name: string;
  /** Below a pod's spec, and below a policy's. */
  readonly path: Path;
  /** The rule of its findings: the field as users write it. */
  readonly rule: string;
  /** In a sentence: `required node affinity`. */
  readonly text: string;
  /** Further fields of a pod's spec that follow from it. */
  readonly derived?: readonly string[];

  /** Of the field in a policy, with the description that `kubectl explain` shows. */
  readonly schema: z.ZodType;
  readonly celRules?: readonly CelRule[];
  /** The value in a policy's spec; `undefined` if the policy has none. Never throws: an unreadable value is a problem. */
  parse(spec: JsonObject, problems: Problem[]): Value | undefined;
  /** Contradictions that no pod can satisfy. Such a policy is invalid. */
  contradictions?(wanted: Value, criteria: Criteria): readonly Problem[];
  /** Allowed values without effect. */
  warnings?(wanted: Value, criteria: Criteria): readonly Problem[];
  /** With nodeName only the kubelet evaluates the pod: it checks this field, or nothing reads it. */
  readonly kubelet?: "checks" | "ignores";

  /** Bounds the work of a merge: known before a value is prepared. */
  sizeOf(wanted: Value): Size;
  /** Reads a value once for all objects that it is merged into. */
  prepare(wanted: Value): Prepared;
  /** Adds the wanted values that are not there. Its work is bounded by `workOfMerge`. */
  merge(target: MergeContext, wanted: Prepared, report: Report): void;
  /** Why the pod can't have it beside another field, in the current spec or after this policy. */
  excluded?(podSpec: Json | undefined, criteria: Criteria, limits: Limits): string | undefined;
  readonly reference?: Reference;
  readonly mutability: Mutability;
  /** Controllers remove it from pods as they proceed: an UPDATE of a pod neither restores nor reports it. */
  readonly consumedByPod?: true;

  /** The unmet part of a pod's spec, compared by meaning; absent: a preference, which is never enforced. */
  unmet?(pod: ComparedPod, wanted: Prepared, limit: WorkLimit): readonly UnmetRequirement[];

  /** Merge and enforcement for new pods in CEL, for an API server that evaluates policies by itself. */
  compile(wanted: Value, criteria: Criteria): CompiledCriterion;
  /**
   * Where the API server, which applies policies in any order, may make another pod of two policies: if one has it at all, if both have
   * criteria about the labels of nodes, which may leave no node together, if both have it with other values, or never.
   */
  readonly firstCounts: "always" | "for nodes" | "for other values" | "never";

  /** The list that elements are added to, below a pod's spec. */
  readonly list?: Path;
  /** Elements are combined with the pod's: those of all policies are removed together, and the remaining ones are merged again. */
  readonly combined?: true;
  /** One string for lists with the same meaning in a pod. @default those with the same elements */
  readonly listMeaning?: (list: readonly Json[], podSpec: Json | undefined) => string;
  /** Other fields of a pod's spec that decide whether elements may be in the list. */
  readonly judgedBy?: readonly string[];
  /** Whether a value of the field counts as absent. @default the empty ones */
  readonly isUnset?: (value: Json) => boolean;
  /** A policy's injection, by the annotation of the stored object and as far as that object still has it. */
  injected(origin: Origin, stored: Stored): Value | undefined;
  /** The reverse: the places and elements by which the annotation names an injection. */
  recorded(injected: Value, spec: Path): Pick<Origin, "set" | "added">;
  /** The part of an injection that its policy no longer requires; `undefined` if it requires all of it. */
  outdated(injected: Value, wanted: Value | undefined): Value | undefined;
  /** The field without injections, as far as they are unchanged; `undefined` if nothing is left. */
  without(present: Json, injected: readonly Value[]): Json | undefined;
}
