import type { PatchOperation } from "../../../core/decision/patch.ts";
import type { Json } from "../../../core/json.ts";
import type { Path } from "../../../core/path.ts";
import type { CheckedPod } from "./checked-pod.ts";

/** A path of a pod that violates a rule. The field is that of a Pod; in a template it is below the template's own. */
export interface ViolationCause {
  readonly field: string;
  readonly message: string;
}

/** The result of one check. */
export interface Violation {
  /** The id of the check. */
  readonly check: string;
  readonly reason: string;
  readonly detail: string;
  readonly causes: readonly ViolationCause[];
  /** Operations on the pod, or on the template, that fix this violation; they apply alone or with those of other violations. */
  readonly fix?: readonly PatchOperation[];
}

/** A value to set, or `undefined` to remove. */
export interface FixEdit {
  readonly path: Path;
  readonly value?: Json;
}

/** A field at fault, and the rule that it breaks. */
export interface FieldViolation {
  readonly path: Path;
  readonly message: string;
}

/** The result of a check's variant for a pod that it forbids. */
export interface Failure {
  readonly reason: string;
  readonly detail: string;
  readonly causes: readonly FieldViolation[];
}

/** The failure of one check. */
export interface CheckFailure extends Failure {
  /** The id of the check. */
  readonly check: string;
}

/** A field that a check reads, with example values. Fixtures and documentation are generated from them. */
export interface RestrictedField {
  /** `pod` is the spec; `container` each container of the three lists; `volume` an element of `volumes`. */
  readonly scope: "pod" | "container" | "volume" | "annotation";
  /** Below the scope. For an annotation its key, where `*` stands for the name of a container. */
  readonly path: Path;
  /** `null` stands for the absent field. */
  readonly allowed: readonly Json[];
  readonly forbidden: readonly Json[];
}

/** What a pod must meet, in CEL. */
export interface CheckInCel {
  readonly pod?: string;
  /** Of each container `c`, beside its pod. */
  readonly container?: string;
}

/** One revision of a check. */
export interface Variant {
  /** The minor version of the policy from which it applies. */
  readonly since: number;
  /** Pods that pass without evaluation: by an explicit `spec.os`, or by `hostUsers: false`. */
  readonly skips?: "windows" | "userNamespace";
  readonly fields: readonly RestrictedField[];
  /** The same for an API server that evaluates a new pod by itself. */
  readonly cel: CheckInCel;
  /** Names at most `mostCauses` fields of each kind. */
  readonly evaluate: (pod: CheckedPod, mostCauses: number) => Failure | undefined;
}

export interface Check {
  readonly id: string;
  readonly level: "baseline" | "restricted";
  /** Checks of baseline that restricted leaves out in favour of this one. */
  readonly overrides?: readonly string[];
  /** The operating system that the fields belong to; `any` if both have them. */
  readonly os: "any" | "linux" | "windows";
  /** The edits that end a failure with these causes. @default only the author of the pod can end it */
  readonly fix?: (causes: readonly FieldViolation[], pod: CheckedPod) => readonly FixEdit[];
  /** In the order of their versions. */
  readonly variants: readonly Variant[];
}
