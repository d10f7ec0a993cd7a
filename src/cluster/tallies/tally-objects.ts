import type { Log } from "../../core/log.ts";
import type { Client } from "../client/client.ts";
import { pathSegment } from "../client/path-segment.ts";
import type { Tallies } from "./tallies.ts";

export interface TallyOptions {
  readonly client: Client;
  /** Usher's own. */
  readonly namespace: string;
  /** This replica's name: its pod's. */
  readonly replica: string;
  readonly book: Tallies;
  readonly log: Log;
  /** Milliseconds, any origin. */
  readonly clock?: () => number;
}

/**
 * Whoever applies a policy and then a pod looks at the status next, and must not wait for a minute. Cheap still: a write a replica,
 * where there is something new, and a small list by the leader.
 */
export const TALLY_EVERY_MS = 10_000;

/** Even where nothing has changed it is written so often, as a sign of life. */
export const SIGN_OF_LIFE_MS = 600_000;

/** Every ConfigMap with tallies has this label, and holds them in this entry. */
export const LABEL = "usher.dev/tallies";
export const ENTRY = "tallies";

/** Each replica has an object of its own, so that no two ever write the same. */
export function tallyName(replica: string): string {
  return `usher-tallies-${replica}`;
}

export function collectionOf(namespace: string): string {
  return `/api/v1/namespaces/${pathSegment("namespace", namespace)}/configmaps`;
}
