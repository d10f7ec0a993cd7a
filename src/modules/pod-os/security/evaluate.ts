import { type JsonObject, stringAt } from "../../../core/json.ts";
import { fieldPath } from "../../../core/path.ts";
import { isValidOS } from "../os/validate.ts";
import type { Check, Failure, Violation } from "./check.ts";
import { ACTIVE_CHECKS, type ActiveCheck, NEWEST_MINOR } from "./checks.ts";
import { FixWriter } from "./fix.ts";
import { type JudgedPod, judgedPod } from "./judged-pod.ts";
import { evaluatedMinor, isLevel, LEVEL_ERROR, type LevelVersion, minorOf, VERSION_ERROR } from "./policy.ts";

export interface PodSecurityOptions {
  /** The API server has validated the pod, so what it says of its OS holds. Otherwise validatePodOS decides. */
  readonly osSkipTrusted?: boolean;
  /** What the API server takes for `latest`: its minor version, the emulated one where it emulates, as number or `v1.N`. */
  readonly newest?: number | string;
  /** Causes that a violation names at most; with a limit it has no fix, which would not be whole. @default all */
  readonly mostCauses?: number;
  /** Only this check is evaluated. @default all of the policy */
  readonly check?: string;
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
  const active = level === "privileged" ? [] : (ACTIVE_CHECKS[level][minor] ?? []);
  const checks =
    options.check === undefined ? active : active.filter(({ check }) => check.id === options.check);
  const pod = judgedPod(metadata, spec);
  const failures = failuresOf(pod, checks, options.osSkipTrusted === true);
  return failures === undefined
    ? { allowed: true, policy, evaluatedVersion, violations: NO_VIOLATIONS, reason: "", detail: "" }
    : new Refusal(policy, evaluatedVersion, pod, failures, options.mostCauses);
}

function newestOf(newest: number | string | undefined): number {
  if (newest === undefined) return NEWEST_MINOR;
  const minor = typeof newest === "number" ? newest : minorOf(newest);
  if (minor === undefined || !(minor >= 0))
    throw new RangeError(`newest ${JSON.stringify(newest)}: ${VERSION_ERROR}`);
  return Math.floor(minor);
}

interface FailedCheck {
  readonly check: Check;
  readonly failure: Failure;
}

function failuresOf(
  pod: JudgedPod,
  checks: readonly ActiveCheck[],
  trusted: boolean,
): readonly FailedCheck[] | undefined {
  let failures: FailedCheck[] | undefined;
  const userNamespace = pod.spec["hostUsers"] === false;
  const windows = isWindows(pod);
  // Restricted would else be weaker than baseline for a pod that only claims to be of Windows.
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
    const failure = active.variant.evaluate(pod);
    if (failure === undefined) continue;
    failures ??= [];
    failures.push({ check: active.check, failure });
  }
  return failures;
}

function isWindows({ spec }: JudgedPod): boolean {
  return stringAt(spec, "os", "name") === "windows";
}

/** The violations are described when they are read: a message needs only reason and detail. */
class Refusal implements PodSecurityResult {
  readonly allowed = false;
  readonly policy: string;
  readonly evaluatedVersion: string;
  declare readonly violations: readonly Violation[];
  readonly reason: string;
  readonly detail: string;
  readonly #pod: JudgedPod;
  readonly #failures: readonly FailedCheck[];
  readonly #mostCauses: number | undefined;
  #described: readonly Violation[] | undefined;

  // An own member as in any result, for spreads and comparisons. One descriptor for all keeps one shape.
  static readonly #VIOLATIONS: PropertyDescriptor & ThisType<Refusal> = {
    enumerable: true,
    configurable: true,
    get() {
      this.#described ??= described(this.#pod, this.#failures, this.#mostCauses);
      return this.#described;
    },
  };

  constructor(
    policy: string,
    evaluatedVersion: string,
    pod: JudgedPod,
    failures: readonly FailedCheck[],
    mostCauses: number | undefined,
  ) {
    this.policy = policy;
    this.evaluatedVersion = evaluatedVersion;
    this.#pod = pod;
    this.#failures = failures;
    this.#mostCauses = mostCauses;
    let reasons = "";
    let details = "";
    for (let i = 0; i < failures.length; i++) {
      const { reason = "", detail = "" } = failures[i]?.failure ?? {};
      const separator = i === 0 ? "" : ", ";
      reasons += separator + reason;
      details += detail === "" ? separator + reason : `${separator}${reason} (${detail})`;
    }
    this.reason = reasons;
    this.detail = details;
    Object.defineProperty(this, "violations", Refusal.#VIOLATIONS);
  }
}

function described(
  pod: JudgedPod,
  failures: readonly FailedCheck[],
  mostCauses: number | undefined,
): Violation[] {
  const { metadata, spec } = pod;
  const windows = isWindows(pod);
  const writer = new FixWriter({ metadata, spec });
  return failures.map(({ check, failure: { reason, detail, places } }) => {
    const { causes, edits } = places(mostCauses ?? Number.POSITIVE_INFINITY);
    // The API server refuses Linux fields in a Windows pod, so none is added there.
    const adds = windows && check.os === "linux" && edits?.some(({ value }) => value !== undefined);
    const isPartial = mostCauses !== undefined;
    const fix = edits === undefined || adds || isPartial ? undefined : writer.operations(edits);
    return {
      check: check.id,
      reason,
      detail,
      causes: causes.map(({ path, message }) => ({ field: fieldPath(path), message })),
      ...(fix === undefined ? {} : { fix }),
    };
  });
}
