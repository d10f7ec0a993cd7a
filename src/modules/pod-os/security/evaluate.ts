import { type JsonObject, stringAt } from "../../../core/json.ts";
import { fieldPath } from "../../../core/path.ts";
import { validatePodOS } from "../os/validate.ts";
import type { Failure, Violation } from "./check.ts";
import { ACTIVE_CHECKS, type ActiveCheck, NEWEST_MINOR } from "./checks.ts";
import { FixWriter } from "./fix.ts";
import { type JudgedPod, judgedPod } from "./judged-pod.ts";
import { evaluatedMinor, isLevel, LEVEL_ERROR, type LevelVersion, minorOf, VERSION_ERROR } from "./policy.ts";

export interface PodSecurityOptions {
  /** The API server has validated the pod, so what it says of its OS holds. Otherwise validatePodOS decides. */
  readonly osSkipTrusted?: boolean;
  /** What the API server takes for `latest`: its minor version, the emulated one where it emulates, as number or `v1.N`. */
  readonly newest?: number | string;
}

export interface PodSecurityResult {
  readonly allowed: boolean;
  /** `restricted:latest`: as it was given. */
  readonly policy: string;
  /** `v1.37`: the version whose checks were run. */
  readonly evaluatedVersion: string;
  readonly violations: readonly Violation[];
  /** The reasons, as upstream joins them; empty where the pod is allowed. */
  readonly reason: string;
  /** The reasons with their details, as upstream joins them. */
  readonly detail: string;
}

const NO_VIOLATIONS: readonly Violation[] = Object.freeze([]);

/**
 * Judges a pod, or the pod of a template, by the Pod Security Standards. Linear in the pod, and throws only for a policy
 * that is none.
 */
export function evaluatePodSecurity(
  { level, version }: LevelVersion | { readonly level: string; readonly version: string },
  metadata: JsonObject | undefined,
  spec: JsonObject | undefined,
  options: PodSecurityOptions = {},
): PodSecurityResult {
  if (!isLevel(level)) throw new RangeError(`level ${JSON.stringify(level)}: ${LEVEL_ERROR}`);
  const requested = minorOf(version);
  if (requested === undefined) throw new RangeError(`version ${JSON.stringify(version)}: ${VERSION_ERROR}`);
  const minor = evaluatedMinor(requested, newestOf(options.newest));
  const policy = `${level}:${version}`;
  const evaluatedVersion = `v1.${minor}`;
  const checks = level === "privileged" ? [] : (ACTIVE_CHECKS[level][minor] ?? []);
  const pod = judgedPod(metadata, spec);
  const violations = violationsOf(pod, checks, options.osSkipTrusted === true);
  if (violations.length === 0)
    return { allowed: true, policy, evaluatedVersion, violations, reason: "", detail: "" };
  return {
    allowed: false,
    policy,
    evaluatedVersion,
    violations,
    reason: violations.map(({ reason }) => reason).join(", "),
    detail: violations
      .map(({ reason, detail }) => (detail === "" ? reason : `${reason} (${detail})`))
      .join(", "),
  };
}

function newestOf(newest: number | string | undefined): number {
  if (newest === undefined) return NEWEST_MINOR;
  const minor = typeof newest === "number" ? newest : minorOf(newest);
  if (minor === undefined || !(minor >= 0))
    throw new RangeError(`newest ${JSON.stringify(newest)}: ${VERSION_ERROR}`);
  return Math.floor(minor);
}

function violationsOf(
  pod: JudgedPod,
  checks: readonly ActiveCheck[],
  trusted: boolean,
): readonly Violation[] {
  let failures: { active: ActiveCheck; failure: Failure }[] | undefined;
  const userNamespace = pod.spec["hostUsers"] === false;
  const windows = stringAt(pod.spec, "os", "name") === "windows";
  // Restricted would else be weaker than baseline for a pod that only claims to be of Windows.
  let skipsWindows = windows && trusted;
  let decided = !windows || trusted;
  for (let i = 0; i < checks.length; i++) {
    const active = checks[i];
    if (active === undefined) continue;
    const { skips } = active.variant;
    if (skips === "windows" && windows) {
      if (!decided) {
        skipsWindows = validatePodOS(pod.spec).length === 0;
        decided = true;
      }
      if (skipsWindows) continue;
    } else if (skips === "userNamespace" && userNamespace) continue;
    const failure = active.variant.evaluate(pod);
    if (failure === undefined) continue;
    failures ??= [];
    failures.push({ active, failure });
  }
  return failures === undefined ? NO_VIOLATIONS : described(pod, failures, windows);
}

function described(
  { metadata, spec }: JudgedPod,
  failures: readonly { active: ActiveCheck; failure: Failure }[],
  windows: boolean,
): Violation[] {
  const writer = new FixWriter({ metadata, spec });
  return failures.map(({ active: { check }, failure }) => {
    const { reason, detail, causes, edits } = failure;
    // The API server refuses Linux fields in a Windows pod, so none is added there.
    const adds = windows && check.os === "linux" && edits?.some(({ value }) => value !== undefined);
    const fix = edits === undefined || adds ? undefined : writer.operations(edits);
    return {
      check: check.id,
      reason,
      detail,
      causes: causes.map(({ path, message }) => ({ field: fieldPath(path), message })),
      ...(fix === undefined ? {} : { fix }),
    };
  });
}
