import { type Json, stringAt } from "../json.ts";

/** A release of Kubernetes, as a server, a kubelet or a distribution reports it. */
export interface KubernetesVersion {
  readonly major: number;
  readonly minor: number;
  readonly patch: number;
  /** After the first `-`, split at dots: `alpha.2`, `gke.1`, `eks-a5565ad`. Empty for a release. */
  readonly prerelease: readonly string[];
  /** After `+`; build metadata, which does not affect the order. */
  readonly build: string;
}

/** Longer than any known version; bounds the cost of the pattern. */
const LONGEST_VERSION = 256;
// A missing patch is allowed (`1.37`), and so is the `+` that some providers append to the minor version.
const VERSION =
  /^v?([0-9]{1,9})\.([0-9]{1,9})(?:\.([0-9]{1,9}))?(?:-([0-9A-Za-z.-]+))?(?:\+([0-9A-Za-z.+_-]*))?$/;
const NUMBER = /^[0-9]+$/;

export function parseVersion(text: string): KubernetesVersion | undefined {
  if (text.length > LONGEST_VERSION) return undefined;
  const found = VERSION.exec(text);
  if (found === null) return undefined;
  const [, major, minor, patch = "0", prerelease, build = ""] = found;
  const parts = prerelease === undefined ? [] : prerelease.split(".");
  if (parts.includes("")) return undefined;
  return { major: Number(major), minor: Number(minor), patch: Number(patch), prerelease: parts, build };
}

/** Negative if `a` is older. Ordered as semantic versions: a pre-release comes before its release. */
export function compareVersions(a: KubernetesVersion, b: KubernetesVersion): number {
  if (a.major !== b.major) return a.major - b.major;
  if (a.minor !== b.minor) return a.minor - b.minor;
  if (a.patch !== b.patch) return a.patch - b.patch;
  if (a.prerelease.length === 0 || b.prerelease.length === 0)
    return b.prerelease.length - a.prerelease.length;
  for (const [i, mine] of a.prerelease.entries()) {
    const other = b.prerelease[i];
    if (other === undefined) return 1;
    const order = compareParts(mine, other);
    if (order !== 0) return order;
  }
  return a.prerelease.length - b.prerelease.length;
}

/** Numbers by value and before words; words by code unit. */
function compareParts(a: string, b: string): number {
  const numbers = [NUMBER.test(a), NUMBER.test(b)];
  if (numbers[0] && numbers[1]) {
    const order = BigInt(a) - BigInt(b);
    return order < 0n ? -1 : order > 0n ? 1 : 0;
  }
  if (numbers[0] !== numbers[1]) return numbers[0] ? -1 : 1;
  return a < b ? -1 : a > b ? 1 : 0;
}

/**
 * Whether this version has the features of Kubernetes 1.`minor`. Only major and minor count: providers mark their own
 * releases as pre-releases (`v1.37.0-gke.1`), and those have every feature of 1.37.
 */
export function atLeast(version: KubernetesVersion, minor: number): boolean {
  return version.major > 1 || (version.major === 1 && version.minor >= minor);
}

/** Which Kubernetes an API server is. */
export interface ServerVersion {
  /** The release that it behaves as: the emulated one if `--emulated-version` is set. Features and defaults follow it. */
  readonly effective: KubernetesVersion;
  /** The release that it was built from. */
  readonly binary: KubernetesVersion;
}

/** API servers before 1.28 evaluate no match conditions. */
const MATCH_CONDITIONS_SINCE = 28;

/** Whether the API server evaluates match conditions. While its version is unknown it is taken for an older one. */
export function hasMatchConditions(of: { readonly serverVersion: ServerVersion | undefined }): boolean {
  return of.serverVersion !== undefined && atLeast(of.serverVersion.effective, MATCH_CONDITIONS_SINCE);
}

export function sameServerVersion(a: ServerVersion, b: ServerVersion | undefined): boolean {
  if (b === undefined) return false;
  return compareVersions(a.effective, b.effective) === 0 && compareVersions(a.binary, b.binary) === 0;
}

/** Reads the answer of `/version`; `undefined` if it is not a version. */
export function parseServerVersion(body: Json | undefined): ServerVersion | undefined {
  const binary =
    parseVersion(stringAt(body, "gitVersion") ?? "") ??
    // Some providers append a `+` to the minor version.
    parseVersion(`${stringAt(body, "major")}.${stringAt(body, "minor")}`);
  if (binary === undefined) return undefined;
  // Since 1.33; an API server that emulates nothing returns its own.
  const emulated = parseVersion(`${stringAt(body, "emulationMajor")}.${stringAt(body, "emulationMinor")}`);
  const same = emulated === undefined || (emulated.major === binary.major && emulated.minor === binary.minor);
  return { effective: same ? binary : emulated, binary };
}
