import type { Log } from "../../core/log.ts";
import type { Client } from "../client/client.ts";
import { pathSegment } from "../client/path-segment.ts";
import type { Tallies } from "./tallies.ts";

export interface TallyOptions {
  readonly client: Client;
  /** Usher's namespace. */
  readonly namespace: string;
  /** The name of this replica's pod. */
  readonly replica: string;
  readonly tallies: Tallies;
  readonly log: Log;
  /** Milliseconds, any origin. */
  readonly clock?: () => number;
}

/** Short, for users who look at a policy's status right after creating a pod. Costs a write per replica with news, and a list by the leader. */
export const TALLY_INTERVAL_MS = 10_000;

/** Tallies are written this often even when unchanged, to show that the replica exists. */
export const HEARTBEAT_MS = 600_000;

/** The label of each ConfigMap with tallies, and the key of its data. */
export const LABEL = "usher.dev/tallies";
export const ENTRY = "tallies";

/** One object per replica, so that writes never conflict.  */
export function tallyName(replica: string): string {
  return `usher-tallies-${replica}`;
}

export function collectionOf(namespace: string): string {
  return `/api/v1/namespaces/${pathSegment("namespace", namespace)}/configmaps`;
}
