import type { EntryList } from "../groups/group.ts";

/** One entry of a built-in list, with its history. Releases are those of the platform: `1.30`, `4.12`. */
export interface BuiltInEntry {
  readonly entry: string;
  readonly list: EntryList;
  /** The first release that needs it, of those looked at: 1.6, the first with RBAC's identities, and 4.1 are the oldest. */
  readonly since: string;
  /** The first release that works without it; it still counts. */
  readonly deprecated?: string;
  /** The first release in which it no longer counts: later than `deprecated`. */
  readonly removed?: string;
  /**
   * The upstream file that the entry comes from, as repository and path: it defines the account, assigns the pods, or names the
   * namespace, whose account `default` every namespace has.
   */
  readonly source: string;
}

/** What is wrong with the history of a list: an entry may go only after one release in which it was deprecated. */
export function historyProblems(entries: readonly BuiltInEntry[]): string[] {
  return entries.flatMap(({ entry, since, deprecated, removed }) => {
    const releases = [since, deprecated, removed].filter((one) => one !== undefined);
    if (!releases.every((one) => RELEASE.test(one))) return [`${entry}: a release must be such as 1.30`];
    if (removed === undefined) return [];
    if (deprecated === undefined) return [`${entry}: removed in ${removed} without a release as deprecated`];
    return releaseNumber(removed) > releaseNumber(deprecated)
      ? []
      : [`${entry}: removed in ${removed}, and deprecated only in ${deprecated}`];
  });
}

const RELEASE = /^\d+\.\d+$/;

function releaseNumber(release: string): number {
  const [major = 0, minor = 0] = release.split(".").map(Number);
  return major * 1_000 + minor;
}
