import { hostname } from "node:os";
import type { AcceptsToken } from "../../admission/review/routes.ts";
import type { LivePair } from "../../admission/tls/certificate.ts";
import type { Client } from "../../cluster/client/client.ts";
import { pathSegment } from "../../cluster/client/discovery.ts";
import { type ClusterSource, openCluster } from "../../cluster/source/cluster-source.ts";
import type { Owns } from "../../cluster/source/composite-source.ts";
import type { Count } from "../../core/decision/decision.ts";
import type { Effects } from "../../core/evaluate/effects.ts";
import { managesWebhooks } from "../../core/installation/installation.ts";
import { at, type JsonObject } from "../../core/json.ts";
import { ownerReference } from "../../core/kubernetes/object.ts";
import type { Log } from "../../core/log.ts";
import type { Assembly } from "../../core/module/assembly.ts";
import type { ControllerStats } from "../../core/module/reconciler.ts";
import { OWN_NAMES } from "../../core/registration/names.ts";
import { openServing, type ServingOptions } from "../../operator/certificates/serving.ts";
import { createMissingCrds } from "../../operator/controller/missing-crds.ts";
import { Replica } from "../../operator/controller/replica.ts";
import { version } from "../version.ts";
import { type ApiServerOptions, apiServer, isOwnCluster } from "./api-server.ts";

export interface LiveOptions extends ApiServerOptions {
  /** Does the whole work of a replica. @default true in a pod of this cluster; elsewhere usher only serves and changes nothing */
  readonly operate?: boolean;
  /** The resources that come from the cluster. @default all */
  readonly owns?: Owns;
  /** The CA of permitted clients. */
  readonly clientCa?: string;
}

export type { ServingOptions } from "../../operator/certificates/serving.ts";

/** A cluster as source, and this process's work beside serving. */
export interface LiveSource {
  readonly source: ClusterSource;
  readonly server: string;
  /** The certificate that webhook configurations trust; absent if this process does not operate the installation. */
  readonly certificate: LivePair | undefined;
  /** Whether API servers trust a certificate chain; absent if unknown. */
  readonly trusts: ((chain: string) => boolean | undefined) | undefined;
  readonly effects: ((effects: Effects) => void) | undefined;
  /** A call failed, or the caller disconnected before its answer. */
  readonly callFailed: (() => void) | undefined;
  /** Whether usher may write for a call with this path segment; absent if it may for every call. */
  readonly acceptsToken: AcceptsToken | undefined;
  /** Absent if this process runs no controller. */
  readonly controllerStats: (() => ControllerStats) | undefined;
  /** Called once the server is listening. */
  readonly start: (count: (counts: readonly Count[]) => void) => void;
  readonly stop: () => Promise<void>;
}

/** An answer that was lost must not hold up the view, or a write, for long: half a minute after a fault all is repaired. */
export const REQUEST_SECONDS = 15;

/** Opens a cluster; resolves once everything that modules need has been read. */
export async function openLiveSource(
  options: LiveOptions,
  assembly: Assembly,
  log: Log,
  serving?: ServingOptions,
): Promise<LiveSource> {
  const client = await apiServer({ requestTimeout: REQUEST_SECONDS, ...options });
  return openLive(
    client,
    { ...options, operate: options.operate ?? isOwnCluster(options) },
    assembly,
    log,
    serving,
  );
}

/** By a client; `self` is the identity of this replica. */
export async function openLive(
  client: Client,
  options: Pick<LiveOptions, "operate" | "owns" | "clientCa">,
  assembly: Assembly,
  log: Log,
  serving?: ServingOptions,
  self: ReplicaIdentity = identity(),
): Promise<LiveSource> {
  const { operate = false } = options;
  let replica: Replica | undefined;
  const ended = new AbortController();
  const { owns, clientCa = assembly.installation.clientCa } = options;
  const source = openCluster({
    client,
    assembly,
    log,
    readOnly: !operate,
    ...(owns === undefined ? {} : { owns }),
  });
  const stop = async () => {
    ended.abort();
    await replica?.stop();
    await source.stop();
    client.close();
  };
  try {
    const deployment = operate ? await ownDeployment(client, assembly.installation.namespace) : undefined;
    const found = { client, assembly, log, signal: ended.signal, owner: deployment };
    if (operate) void createMissingCrds({ ...found, source, version: version() });
    const [certificates] = await Promise.all([
      operate && serving !== undefined ? openServing(found, serving) : undefined,
      source.cache.waitForSync(),
    ]);
    if (operate)
      replica = new Replica({
        client,
        source,
        certificates: certificates?.managed,
        log,
        version: version(),
        callersVerified: clientCa !== undefined,
        deployment,
        ...self,
      });
    await replica?.join(ended.signal);
    const isManaged = managesWebhooks(assembly.installation);
    const acceptsToken = isManaged || clientCa === undefined ? certificates?.acceptsToken : undefined;
    // Without a token any client that reaches the port could pass for an API server.
    const isOpen = operate && acceptsToken === undefined && clientCa === undefined;
    if (isOpen)
      log.warn(
        {},
        "requests can't be authenticated: no events are written and no matches counted; set --client-ca",
      );
    return {
      source,
      server: client.server,
      certificate: certificates?.pair,
      trusts: certificates?.trusts,
      effects: replica?.effects,
      callFailed: replica?.callFailed,
      acceptsToken: acceptsToken ?? (isOpen ? () => false : undefined),
      controllerStats: replica?.controllerStats,
      start: (count) => replica?.start(count),
      stop: async () => {
        certificates?.stop();
        await stop();
      },
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/**
 * Usher's Deployment, as an ownerReference: certificate, Lease and observations are deleted with it, however it is
 * removed. Without it, or without permission to read it, they have no owner.
 */
async function ownDeployment(client: Client, namespace: string): Promise<JsonObject | undefined> {
  const name = OWN_NAMES.deployment;
  const path = `/apis/apps/v1/namespaces/${pathSegment("namespace", namespace)}/deployments/${name}`;
  const read = await client.request("GET", path).catch(() => undefined);
  const metadata = read?.status === 200 ? at(read.body, "metadata") : undefined;
  return metadata === undefined
    ? undefined
    : ownerReference({ apiVersion: "apps/v1", kind: "Deployment", metadata });
}

interface ReplicaIdentity {
  /** The pod's name. */
  readonly identity: string;
  /** The pod, as an ownerReference. */
  readonly owner?: JsonObject;
}

/** The identity of this replica: its pod, from the environment; outside of a pod, host name and process id. */
export function identity(): ReplicaIdentity {
  const { POD_NAME: name, POD_UID: uid } = process.env;
  if (name === undefined) return { identity: `${hostname().toLowerCase()}-${process.pid}` };
  if (uid === undefined) return { identity: name };
  return { identity: name, owner: { apiVersion: "v1", kind: "Pod", name, uid } };
}
