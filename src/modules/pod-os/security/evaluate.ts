import { type JsonObject, stringAt } from "../../../core/json.ts";
import { fieldPath } from "../../../core/path.ts";
import { isValidOS } from "../os/validate.ts";
import type { CheckFailure, Violation } from "./check.ts";
import { type CheckedPod, checkedPod } from "./checked-pod.ts";
import { ACTIVE_CHECKS, type ActiveCheck, CHECKS, NEWEST_MINOR } from "./checks.ts";
import { FixWriter } from "./fix.ts";
import { evaluatedMinor, isLevel, LEVEL_ERROR, type LevelVersion, minorOf, VERSION_ERROR } from "./policy.ts";

export interface CheckOptions {
  /** The API server has validated the pod, so its `spec.os` is valid. @default validatePodOS decides */
  readonly osSkipTrusted?: boolean;
  /** The minor version of the API server, which `latest` means: the emulated one if it emulates, as number or `v1.N`. */
  readonly newest?: number | string;
  /** Causes that a failure names at most. @default all */
  readonly mostCauses?: number;
  /** Only this check is evaluated. @default all of the policy */
  readonly check?: string;
}

export interface PodSecurityOptions extends CheckOptions {
  /**
   * Whether each violation has its fix, if one exists. A fix needs all causes, so there is none with `mostCauses`.
   * @default false
   */
  readonly fixes?: boolean;
}

export interface PodSecurityResult {
  readonly allowed: boolean;
  /** `restricted:latest`: as given. */
  readonly policy: string;
  /** `v1.37`: the version whose checks were run. */
  readonly evaluatedVersion: string;
  readonly violations: readonly Violation[];
  /** The reasons, joined like upstream; empty if the pod is allowed. */
  readonly reason: string;
  /** The reasons with their details, as upstream joins them. */
  readonly detail: string;
}

/**
 * Evaluates a pod, or the pod of a template, by the Pod Security Standards. Linear in the pod. Throws only if `level`
 * or `version` is invalid.
 */
export function evaluatePodSecurity(
  policy: EvaluatedPolicy,
  metadata: JsonObject | undefined,
  spec: JsonObject | undefined,
  options: PodSecurityOptions = {},
): PodSecurityResult {
  const pod = checkedPod(metadata, spec);
  const { evaluatedVersion, failures } = evaluateChecks(policy, pod, options);
  const fixes = options.fixes === true && options.mostCauses === undefined;
  return {
    allowed: failures.length === 0,
    policy: `${policy.level}:${policy.version}`,
    evaluatedVersion,
    violations: violationsOf(pod, failures, fixes),
    reason: failures.map(({ reason }) => reason).join(", "),
    detail: detailOf(failures),
  };
}

type EvaluatedPolicy = LevelVersion | { readonly level: string; readonly version: string };

/** The checks that a pod fails, in the order of the checks. */
export function evaluateChecks(
  { level, version }: EvaluatedPolicy,
  pod: CheckedPod,
  { osSkipTrusted = false, newest, mostCauses = Number.POSITIVE_INFINITY, check }: CheckOptions,
): { readonly evaluatedVersion: string; readonly failures: readonly CheckFailure[] } {
  if (!isLevel(level)) throw new RangeError(`level ${JSON.stringify(level)}: ${LEVEL_ERROR}`);
  const requested = minorOf(version);
  if (requested === undefined) throw new RangeError(`version ${JSON.stringify(version)}: ${VERSION_ERROR}`);
  const minor = evaluatedMinor(requested, newestOf(newest));
  const active = level === "privileged" ? [] : (ACTIVE_CHECKS[level][minor] ?? []);
  const checks = check === undefined ? active : active.filter((one) => one.check.id === check);
  return { evaluatedVersion: `v1.${minor}`, failures: failuresOf(pod, checks, osSkipTrusted, mostCauses) };
}

/** The reasons with their details, as upstream joins them. */
export function detailOf(found: readonly Pick<CheckFailure, "reason" | "detail">[]): string {
  return found.map(({ reason, detail }) => (detail === "" ? reason : `${reason} (${detail})`)).join(", ");
}

function newestOf(newest: number | string | undefined): number {
  if (newest === undefined) return NEWEST_MINOR;
  const minor = typeof newest === "number" ? newest : minorOf(newest);
  if (minor === undefined || !(minor >= 0))
    throw new RangeError(`newest ${JSON.stringify(newest)}: ${VERSION_ERROR}`);
  return Math.floor(minor);
}

function failuresOf(
  pod: CheckedPod,
  checks: readonly ActiveCheck[],
  trusted: boolean,
  mostCauses: number,
): readonly CheckFailure[] {
  const failures: CheckFailure[] = [];
  const userNamespace = pod.spec["hostUsers"] === false;
  const windows = isWindows(pod);
  // Otherwise restricted would be weaker than baseline for a pod that only claims to be a Windows pod.
  let skipsWindows = windows && trusted;
  let decided = !windows || trusted;
  for (let i = 0; i < checks.length; i++) {
    const active = checks[i];
    if (active === undefined) continue;
    const { skips } = active.variant;
    if (skips === "windows" && windows) {
      if (!decided) {
        skipsWindows = isValidOS(pod.spec);
        decided = true;
      }
      if (skipsWindows) continue;
    } else if (skips === "userNamespace" && userNamespace) continue;
    const failure = active.variant.evaluate(pod, mostCauses);
    if (failure !== undefined) failures.push({ check: active.check.id, ...failure });
  }
  return failures;
}

function isWindows({ spec }: CheckedPod): boolean {
  return stringAt(spec, "os", "name") === "windows";
}

function violationsOf(pod: CheckedPod, failures: readonly CheckFailure[], fixes: boolean): Violation[] {
  const { metadata, spec } = pod;
  const writer = fixes ? new FixWriter({ metadata, spec }) : undefined;
  return failures.map(({ check, reason, detail, causes }) => {
    const { fix: editsOf, os } = CHECKS.find(({ id }) => id === check) ?? {};
    const edits = writer === undefined ? undefined : editsOf?.(causes, pod);
    // The API server refuses Linux fields in a Windows pod, so none is added there.
    const adds = isWindows(pod) && os === "linux" && edits?.some(({ value }) => value !== undefined);
    const fix = edits === undefined || adds ? undefined : writer?.operations(edits);
    return {
      check,
      reason,
      detail,
      causes: causes.map(({ path, message }) => ({ field: fieldPath(path), message })),
      ...(fix === undefined ? {} : { fix }),
    };
  });
}
