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
