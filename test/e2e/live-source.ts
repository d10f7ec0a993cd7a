// A live source as the e2e tests open it: with a kubeconfig, and optionally through the fault proxy.
import { randomUUID } from "node:crypto";
import { readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Client } from "../../src/cluster/client/client.ts";
import { createClient } from "../../src/cluster/client/https-client.ts";
import { kubeconfigCredentials } from "../../src/cluster/credentials/kubeconfig.ts";
import { REFLECTOR_LIMITS, type ReflectorLimits } from "../../src/cluster/informers/reflector-limits.ts";
import { type ClusterSource, openCluster } from "../../src/cluster/source/cluster-source.ts";
import { Gates } from "../../src/core/installation/gates.ts";
import { DEFAULT_INSTALLATION, type Installation } from "../../src/core/installation/installation.ts";
import { type JsonObject, listAt } from "../../src/core/json.ts";
import { nameOf, namespaceOf } from "../../src/core/kubernetes/object.ts";
import { SILENT } from "../../src/core/log.ts";
import { Assembly } from "../../src/core/module/assembly.ts";
import type { Module } from "../../src/core/module/module.ts";
import { customResourceDefinition } from "../../src/core/registration/crd.ts";
import { projector } from "../../src/core/view/projection.ts";
import type { Change } from "../../src/core/view/view.ts";
import type { ClusterAccess } from "../cluster/access/access.ts";
import { eventually } from "../cluster/access/wait.ts";

export interface OpenLive extends AsyncDisposable {
  readonly source: ClusterSource;
  readonly client: Client;
  /** Effective changes of the view, in order. */
  readonly changes: Change[];
}

export interface OpenOptions {
  /** @default the API server itself */
  readonly address?: string;
  readonly limits?: Partial<ReflectorLimits>;
  readonly installation?: Installation;
  /** @default the modules' default gates */
  readonly gates?: Gates;
}

/** Opens the source; its first list may still be in progress. */
export async function openLive(
  cluster: ClusterAccess,
  modules: readonly Module[],
  { address = cluster.server, limits = {}, installation = DEFAULT_INSTALLATION, ...given }: OpenOptions = {},
): Promise<OpenLive> {
  const client = await clientOf(cluster, address);
  const changes: Change[] = [];
  const source = openCluster({
    client,
    assembly: new Assembly(
      modules,
      installation,
      given.gates ?? new Gates(modules.flatMap(({ gates }) => gates ?? [])),
    ),
    log: SILENT,
    limits: { ...REFLECTOR_LIMITS, ...limits },
    changed: (real) => void changes.push(...real),
  });
  const stop = async (): Promise<void> => {
    await source.stop();
    client.close();
  };
  return { source, client, changes, [Symbol.asyncDispose]: stop };
}

/** A client with the administrator's kubeconfig, optionally for another address. */
export async function clientOf(cluster: ClusterAccess, address: string): Promise<Client> {
  const original = await readFile(await cluster.kubeconfig(), "utf8");
  const file = join(tmpdir(), `usher-kubeconfig-${randomUUID()}`);
  await writeFile(file, original.replaceAll(cluster.server, address), { mode: 0o600 });
  try {
    const credentials = await kubeconfigCredentials({ file });
    await credentials.access();
    return createClient(credentials);
  } finally {
    await rm(file);
  }
}

/** Installs the kinds of modules, and waits until they are served. */
export async function installKinds(cluster: ClusterAccess, modules: readonly Module[]): Promise<void> {
  for (const kind of modules.flatMap(({ kinds }) => kinds)) {
    await cluster.apply(customResourceDefinition(kind));
    const path = `/apis/${kind.group}/${kind.versions[0]?.name}/${kind.plural}`;
    await eventually(
      `${kind.plural} served`,
      async () => (await cluster.request("GET", path)).status === 200,
    );
  }
}

/** The fields of configmaps that the conformance module keeps, from a fresh list. */
async function freshConfigMaps(cluster: ClusterAccess): Promise<Map<string, JsonObject>> {
  const list = await cluster.call("GET", "/api/v1/configmaps");
  const objects = new Map<string, JsonObject>();
  for (const item of listAt(list, "items")) {
    const object = { apiVersion: "v1", kind: "ConfigMap", ...(item as JsonObject) };
    objects.set(`${namespaceOf(object)}/${nameOf(object)}`, projector([["metadata", "labels"]])(object));
  }
  return objects;
}

/** The view is right again within this time after any fault. */
const RIGHT_AGAIN_MS = 30_000;

/** Waits until the view of configmaps equals a fresh list. */
export async function viewEqualsList(cluster: ClusterAccess, source: ClusterSource): Promise<void> {
  const text = (objects: Iterable<[string, JsonObject]>): string =>
    JSON.stringify([...objects].sort(([a], [b]) => (a < b ? -1 : 1)));
  await eventually(
    "the view to equal a fresh list",
    async () => {
      const { view } = source.assembly;
      const fresh = text(await freshConfigMaps(cluster));
      const seen = [...view.list("configmaps")].map((object): [string, JsonObject] => [
        `${namespaceOf(object)}/${nameOf(object)}`,
        object,
      ]);
      return text(seen) === fresh;
    },
    RIGHT_AGAIN_MS,
  );
}
