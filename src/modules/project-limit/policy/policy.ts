import type { PolicyRef } from "../../../core/policy/policy-ref.ts";

/** The only object that counts. */
export const SINGLETON = "cluster";

/** One of `spec.limits`. All given fields must match. */
export interface LimitRule {
  readonly selector: ReadonlyMap<string, string>;
  /** Any of them. `undefined`: not given. */
  readonly groups: ReadonlySet<string> | undefined;
  readonly users: ReadonlySet<string> | undefined;
  /** `undefined`: unlimited. */
  readonly maxProjects: number | undefined;
}

/** A ProjectRequestLimit with all defaults filled in. */
export interface ProjectLimits {
  readonly ref: PolicyRef;
  readonly rules: readonly LimitRule[];
  readonly maxProjectsForSystemUsers: number | undefined;
  readonly maxProjectsForServiceAccounts: number | undefined;
  readonly serviceAccountsPer: "Account" | "Namespace";
  readonly count: "Exact" | "BestEffort";
  readonly failurePolicy: "Fail" | "Ignore";
  readonly timeoutSeconds: number;
  /** Whether Namespaces are evaluated and annotated too. */
  readonly namespaces: boolean;
  readonly exempt: { readonly users: ReadonlySet<string>; readonly groups: ReadonlySet<string> };
  readonly trustedAnnotators: ReadonlySet<string>;
  /** Whether answers may differ from those of OpenShift 3.11's plugin. */
  readonly extensions: boolean;
  /** Why the spec is unusable: limited requests are then refused, or pass if `failurePolicy` is Ignore. */
  readonly invalid: string | undefined;
}
