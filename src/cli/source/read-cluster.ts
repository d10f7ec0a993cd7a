import type { Client } from "../../cluster/client/client.ts";
import { createResources } from "../../cluster/client/discovery.ts";
import { watchedResources } from "../../cluster/informers/informer-cache.ts";
import { type ClusterSource, openCluster } from "../../cluster/source/cluster-source.ts";
import type { Owns } from "../../cluster/source/composite-source.ts";
import type { Assembly } from "../../core/module/assembly.ts";
import type { Declarations } from "../../core/module/module.ts";
import { CallError, EXIT } from "../exit.ts";
import { createLog } from "../output/log.ts";
import { type ApiServerOptions, apiServer, clusterError, timeoutOf } from "./api-server.ts";
import type { Opened } from "./open.ts";
import { watchResponses } from "./watched-client.ts";

export interface ReadClusterOptions {
  /** Also reads leader-only resources. */
  readonly leaderReads?: boolean;
  /** The remedy without permission to read. */
  readonly hint?: string | undefined;
  /** The resources that come from the cluster. @default all */
  readonly owns?: Owns;
  readonly note: (text: string) => void;
}

/** Reads a live cluster, and changes nothing. Fails if it can't be read, or does not respond in time. */
export async function readCluster(
  options: ApiServerOptions,
  assembly: Assembly,
  { leaderReads = false, hint, owns = () => true, note }: ReadClusterOptions,
): Promise<Opened> {
  const { promise: gaveUp, reject } = Promise.withResolvers<never>();
  gaveUp.catch(() => undefined);
  const client = watchResponses(await apiServer(options), {
    timeoutMs: timeoutOf(options),
    waiting: note,
    giveUp: (message) => reject(new CallError(message, EXIT.failed)),
  });
  let source: ClusterSource | undefined;
  const stop = async () => {
    await source?.stop();
    client.close();
  };
  const read = async (): Promise<ClusterSource> => {
    await checkReadable(client, assembly, { leaderReads, hint, owns });
    source = openCluster({ client, assembly, log: createLog("error"), owns });
    await source.cache.waitForSync();
    if (leaderReads) await source.cache.startLeading();
    return source;
  };
  try {
    const opened = await Promise.race([gaveUp, read()]);
    client.stopWatching();
    return { source: opened, faulty: false, problems: [], stop };
  } catch (error) {
    await stop();
    throw clusterError(error, client);
  }
}

/**
 * Fails if a resource that modules need can't be listed. An informer cache would retry forever, as a replica must; a
 * user at a prompt would see nothing. `hint` is the remedy without permission.
 */
export async function checkReadable(
  client: Client,
  declarations: Declarations,
  options: {
    readonly leaderReads?: boolean;
    readonly hint?: string | undefined;
    readonly owns?: (resource: string) => boolean;
  } = {},
): Promise<void> {
  const { leaderReads = false, hint = "ask an administrator for the permission", owns } = options;
  const resources = createResources(client, declarations.modules);
  for (const { resource, required, leaderOnly } of watchedResources(declarations)) {
    if (!required || (leaderOnly && !leaderReads) || owns?.(resource) === false) continue;
    const { status } = await client.request("GET", `${await resources.pathOf(resource)}?limit=1`);
    if (status === 403)
      throw new CallError(
        `you are not allowed to list ${resource}, which policies need; ${hint}`,
        EXIT.failed,
      );
    if (status === 404)
      throw new CallError(
        `${client.server} does not serve ${resource}: is usher installed? Policies of files are reviewed on this cluster with --source and --cluster`,
        EXIT.failed,
      );
    if (status >= 400)
      throw new CallError(`list ${resource}: the API server returned ${status}`, EXIT.failed);
  }
}
