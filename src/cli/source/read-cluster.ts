import { type ClusterSource, openCluster } from "../../cluster/source/cluster-source.ts";
import type { Owns } from "../../cluster/source/composite-source.ts";
import type { Assembly } from "../../core/evaluate/assembly.ts";
import { CallError, EXIT } from "../exit.ts";
import { createLog } from "../output/log.ts";
import { type ApiServerOptions, apiServer, clusterError, timeoutOf } from "./api-server.ts";
import { checkReadable } from "./check-readable.ts";
import type { Opened } from "./open.ts";
import { watchResponses } from "./watched-client.ts";

export interface ReadClusterOptions {
  /** Reads what only a leader needs as well. */
  readonly leaderReads?: boolean;
  /** What to do without the right to read. */
  readonly hint?: string | undefined;
  /** Which resources come from the cluster. @default all */
  readonly owns?: Owns;
  readonly note: (text: string) => void;
}

/** Reads a live cluster, and changes nothing. Fails where it can't be read, or does not respond in time. */
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
