import type { EntryList } from "../groups/group.ts";

/** One entry of a built-in list, with its history. Releases are those of the platform: `1.30`, `4.12`. */
export interface BuiltInEntry {
  readonly entry: string;
  readonly list: EntryList;
  readonly since: string;
  /** The first release that works without it; it still counts. */
  readonly deprecated?: string;
  /** The first release in which it no longer counts: later than `deprecated`. */
  readonly removed?: string;
  /** The upstream file that the entry comes from, as repository and path. */
  readonly source: string;
}
