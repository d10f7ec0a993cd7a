import type { PatchOperation } from "../../../core/evaluate/patch.ts";
import type { Json } from "../../../core/json.ts";
import type { Path } from "../../../core/path.ts";
import type { JudgedPod } from "./judged-pod.ts";

/** A place of a pod that breaks a rule. The field is that of a Pod; in a template it is below the template's own. */
export interface ViolationCause {
  readonly field: string;
  readonly message: string;
}

/** What one check found. */
export interface Violation {
  /** The id of the check. */
  readonly check: string;
  readonly reason: string;
  readonly detail: string;
  readonly causes: readonly ViolationCause[];
  /** Operations on the pod, or on the template: they end this violation, beside each other and in any number. */
  readonly fix?: readonly PatchOperation[];
}

/** A value to set, or to remove where there is none. */
export interface FixEdit {
  readonly path: Path;
  readonly value?: Json;
}

/** What a variant of a check returns for a pod that it forbids. */
export interface Failure {
  readonly reason: string;
  readonly detail: string;
  /** Made only where they are read, and no more than are read: most refusals need no more than the texts. */
  readonly places: (most: number) => Places;
}

/** At most as many of each as were asked for. */
export interface Places {
  readonly causes: readonly { readonly path: Path; readonly message: string }[];
  readonly edits?: readonly FixEdit[];
}

/** A field that a check looks at, with values of each kind. Fixtures and documentation are made from them. */
export interface RestrictedField {
  /** `pod` is the spec; `container` each container of the three lists; `volume` an element of `volumes`. */
  readonly scope: "pod" | "container" | "volume" | "annotation";
  /** Below the scope. For an annotation its key, where `*` stands for the name of a container. */
  readonly path: Path;
  /** `null` stands for the absent field. */
  readonly allowed: readonly Json[];
  readonly forbidden: readonly Json[];
}

/** One revision of a check. */
export interface Variant {
  /** The minor version of the policy from which it applies. */
  readonly since: number;
  /** Pods that pass without being looked at: by an explicit `spec.os`, or by `hostUsers: false`. */
  readonly skips?: "windows" | "userNamespace";
  readonly fields: readonly RestrictedField[];
  readonly evaluate: (pod: JudgedPod) => Failure | undefined;
}

export interface Check {
  readonly id: string;
  readonly level: "baseline" | "restricted";
  /** Checks of baseline that restricted leaves out in favour of this one. */
  readonly overrides?: readonly string[];
  /** The operating system that the fields belong to; `any` where both have them. */
  readonly os: "any" | "linux" | "windows";
  /** In the order of their versions. */
  readonly variants: readonly Variant[];
}
