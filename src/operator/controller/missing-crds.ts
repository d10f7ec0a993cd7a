import type { Client } from "../../cluster/client/client.ts";
import { pause } from "../../cluster/client/retry.ts";
import type { ClusterSource } from "../../cluster/source/cluster-source.ts";
import { nameOf } from "../../core/kubernetes/object.ts";
import type { Log } from "../../core/log.ts";
import { registeredResources } from "../../core/registration/crd.ts";
import { registeredKinds } from "../../core/registration/index.ts";
import { anchor } from "../../core/registration/managed-objects.ts";
import { DeduplicatedLog } from "../deduplicated-log.ts";
import { describeObject, Objects } from "../install/apply.ts";

interface MissingCrdsOptions {
  readonly client: Client;
  readonly source: ClusterSource;
  readonly log: Log;
  readonly version: string;
  readonly signal: AbortSignal;
  readonly retryMs?: number;
}

const RETRY_MS = 1_000;

/**
 * Creates CRDs that do not exist, if usher may: a replica waits until its kinds are served, and there is no leader
 * before a replica serves. Gardener deploys a chart without its folder `crds` and without its hooks. Reads nothing
 * while all kinds are served, and changes no existing CRD: that is the leader's task.
 */
export async function createMissingCrds(options: MissingCrdsOptions): Promise<void> {
  const { client, source, log, version, signal, retryMs = RETRY_MS } = options;
  const objects = new Objects(client);
  const deduplicated = new DeduplicatedLog(log, () => performance.now());
  const own = new Set(registeredResources(source.assembly).map(({ plural, group }) => `${plural}.${group}`));
  while (!signal.aborted && !source.ready) {
    // Kinds of OpenShift are absent elsewhere, and usher has no CRD of them.
    const absent = source.cache
      .status()
      .filter(({ served, resource }) => served === false && own.has(resource));
    try {
      for (const crd of absent.length === 0 ? [] : registeredKinds(source.assembly, version)) {
        if (!absent.some(({ resource }) => resource === nameOf(crd))) continue;
        if ((await objects.read(crd)) !== undefined || (await objects.read(anchor())) === undefined) continue;
        await objects.apply(crd);
        log.info({ object: describeObject(crd) }, "CRD created");
      }
    } catch (error) {
      deduplicated.failed("CRDs", error, "failed to create missing CRDs, retrying");
    }
    await pause(retryMs, signal);
  }
}
