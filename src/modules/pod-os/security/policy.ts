import { isObject, type JsonObject, own, textOf } from "../../../core/json.ts";
import { invalid, type PodFieldError } from "../field-error.ts";
import { goQuote } from "../go-text.ts";
import { NEWEST_MINOR } from "./checks.ts";

export type Level = "privileged" | "baseline" | "restricted";

export interface LevelVersion {
  readonly level: Level;
  /** `latest` or `v1.N`, as it was written. */
  readonly version: string;
}

/** The three modes of a namespace. */
export interface PodSecurityPolicy {
  readonly enforce: LevelVersion;
  readonly audit: LevelVersion;
  readonly warn: LevelVersion;
}

export const LABEL_PREFIX = "pod-security.kubernetes.io/";

const LEVELS: readonly string[] = ["privileged", "baseline", "restricted"];
export const LEVEL_ERROR = `must be one of ${LEVELS.join(", ")}`;
export const VERSION_ERROR = 'must be "latest" or "v1.x"';

const VERSION = /^v1\.(0|[1-9][0-9]*)$/;
/** Go reads the minor version as a signed 64-bit number. */
const LARGEST_MINOR = 2n ** 63n - 1n;
const DIGITS = String(LARGEST_MINOR).length;

export function isLevel(text: unknown): text is Level {
  return typeof text === "string" && LEVELS.includes(text);
}

/** The minor version; infinite for `latest`, `undefined` if the string is not a version. */
export function minorOf(version: unknown): number | undefined {
  if (version === "latest") return Number.POSITIVE_INFINITY;
  if (typeof version !== "string" || version.length > DIGITS + 3) return undefined;
  const digits = VERSION.exec(version)?.[1];
  if (digits === undefined) return undefined;
  return digits.length === DIGITS && BigInt(digits) > LARGEST_MINOR ? undefined : Number(digits);
}

/** The version at which a policy is evaluated, where `newest` is the API server's. */
export function evaluatedMinor(minor: number, newest: number): number {
  return Math.min(minor, newest, NEWEST_MINOR);
}

/** Positive if `a` is stricter. */
export function compareLevels(a: Level, b: Level): number {
  return LEVELS.indexOf(a) - LEVELS.indexOf(b);
}

const PRIVILEGED: LevelVersion = { level: "privileged", version: "latest" };

/**
 * The policy of a namespace by its labels, over the defaults. A wrong level of enforce gives restricted, of audit and
 * warn privileged; a wrong version gives latest. Warn follows a stricter enforce unless a label sets it.
 */
export function podSecurityPolicyOf(
  labels: JsonObject | undefined,
  defaults: Partial<PodSecurityPolicy> = {},
): PodSecurityPolicy & { readonly errors: readonly PodFieldError[] } {
  const errors: PodFieldError[] = [];
  const given = (key: string): string | undefined => {
    const value = isObject(labels) ? own(labels, `${LABEL_PREFIX}${key}`) : undefined;
    return value === undefined || value === null ? undefined : textOf(value);
  };
  const report = (key: string, value: string, detail: string): void => {
    errors.push(invalid(`metadata.labels[${LABEL_PREFIX}${key}]`, value, goQuote(value), detail));
  };
  const read = (mode: keyof PodSecurityPolicy, otherwise: Level): LevelVersion => {
    let { level, version } = defaults[mode] ?? PRIVILEGED;
    const levelText = given(mode);
    if (isLevel(levelText)) level = levelText;
    else if (levelText !== undefined) {
      level = otherwise;
      report(mode, levelText, LEVEL_ERROR);
    }
    const versionText = given(`${mode}-version`);
    if (versionText !== undefined) {
      const valid = minorOf(versionText) !== undefined;
      version = valid ? versionText : "latest";
      if (!valid) report(`${mode}-version`, versionText, VERSION_ERROR);
    }
    return { level, version };
  };
  const enforce = read("enforce", "restricted");
  const audit = read("audit", "privileged");
  let warn = read("warn", "privileged");
  const follows =
    given("warn") === undefined && isLevel(given("enforce")) && compareLevels(enforce.level, warn.level) > 0;
  if (follows)
    warn = {
      level: enforce.level,
      version: given("warn-version") === undefined ? enforce.version : warn.version,
    };
  return { enforce, audit, warn, errors };
}
