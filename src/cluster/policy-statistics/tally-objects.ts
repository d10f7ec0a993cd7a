import type { JsonObject } from "../../core/json.ts";
import type { Log } from "../../core/log.ts";
import { responseMessage } from "../client/api-response.ts";
import type { Client } from "../client/client.ts";
import { FIELD_MANAGER } from "../client/client.ts";
import { pathSegment } from "../client/discovery.ts";
import type { Tallies } from "./tallies.ts";

export interface TallyOptions {
  readonly client: Client;
  /** Usher's namespace. */
  readonly namespace: string;
  /** Names this process: the pod and its start time. */
  readonly replica: string;
  readonly tallies: Tallies;
  /** The owner of the ConfigMaps, as an ownerReference: they are deleted with usher, but outlive their replica. @default none */
  readonly owner?: () => Promise<JsonObject | undefined>;
  readonly log: Log;
  /** Milliseconds, any origin. */
  readonly clock?: () => number;
}

/**
 * Short, for users who look at a policy's status right after creating a pod. Costs a write per replica with changes,
 * and a list by the leader.
 */
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

/** The tallies of replicas that are gone, summed by the leader. No pod has this name. */
export const RETIRED = tallyName("retired");

/** Of the 1 MiB of a ConfigMap, minus metadata and JSON escapes. About 5,000 policies. */
export const MOST_BYTES = 700_000;

/** Writes one ConfigMap of tallies. `version`: the one that the write is based on. @default any */
export async function writeTallies(
  { client, namespace, owner }: Pick<TallyOptions, "client" | "namespace" | "owner">,
  name: string,
  data: Readonly<Record<string, string>>,
  annotations: Readonly<Record<string, string>>,
  version?: string,
): Promise<void> {
  const owned = await owner?.();
  const body: JsonObject = {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: {
      name,
      namespace,
      labels: { [LABEL]: "true" },
      annotations: { ...annotations },
      ...(owned === undefined ? {} : { ownerReferences: [owned] }),
      ...(version === undefined ? {} : { resourceVersion: version }),
    },
    data: { ...data },
  };
  const path = `${collectionOf(namespace)}/${pathSegment("name", name)}?fieldManager=${FIELD_MANAGER}&force=true`;
  const response = await client.request("PATCH", path, { body, contentType: "application/apply-patch+yaml" });
  if (response.status >= 300) throw new Error(responseMessage(`PATCH ${name}`, response));
}

export function collectionOf(namespace: string): string {
  return `/api/v1/namespaces/${pathSegment("namespace", namespace)}/configmaps`;
}
