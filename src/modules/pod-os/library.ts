/** The library of this module: pure functions on plain JSON, for the webhook, the command line and other programs. */

export type { FieldErrorType, PodFieldError } from "./field-error.ts";
export { type PodOS, type PodOSContradiction, type ResolvedPodOS, resolvePodOS } from "./os/resolve.ts";
export { validatePodOSResize, validatePodOSUpdate } from "./os/update.ts";
export { validatePodOS } from "./os/validate.ts";
export type { Check, RestrictedField, Variant, Violation, ViolationCause } from "./security/check.ts";
export { CHECKS, NEWEST_MINOR } from "./security/checks.ts";
export { evaluatePodSecurity, type PodSecurityOptions, type PodSecurityResult } from "./security/evaluate.ts";
export {
  type Level,
  type LevelVersion,
  type PodSecurityPolicy,
  podSecurityPolicyOf,
} from "./security/policy.ts";
