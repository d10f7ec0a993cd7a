// A real control plane for a test: `await using cluster = await startCluster()`.
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { JsonObject } from "../../src/core/json.ts";
import { ClusterAccess, type ClusterInfo } from "./access/access.ts";
import { Identities } from "./access/identity.ts";
import { eventually } from "./access/wait.ts";
import { type Binaries, ensureBinaries } from "./binaries.ts";
import { Component } from "./components/component.ts";
import { type ClusterFiles, serverUrl, writeFiles } from "./components/files.ts";
import {
  COMPONENTS,
  type ComponentName,
  componentArguments,
  componentIdentity,
  healthUrl,
} from "./components/flags.ts";
import { writeStages } from "./components/kwok-stages.ts";
import { choosePorts, type Ports } from "./components/ports.ts";
import { makeDataFolder, sweepAbandoned } from "./data-folder.ts";
import { EgressProxy } from "./egress/proxy.ts";
import { Routes } from "./egress/routes.ts";
import { Watchdog } from "./processes/watchdog.ts";
import { type Images, Runner } from "./runner.ts";

/** Another process may take a port between the check and its use. */
const ATTEMPTS = 3;

export interface ClusterOptions {
  /** Components to leave out; etcd and the API server always run. */
  readonly without?: readonly Exclude<ComponentName, "etcd" | "kube-apiserver">[];
  /** More flags for a component; the last one of a flag counts. */
  readonly flags?: Partial<Record<ComponentName, readonly string[]>>;
  readonly auditPolicy?: JsonObject;
  /** The programs that the images of real pods start, by the last part of the image's name. */
  readonly images?: Images;
  /** A proxy between real pods and the API server; returns the address that the pods use instead. */
  readonly between?: (server: string) => Promise<string>;
}

export class Cluster extends ClusterAccess {
  readonly #components: ReadonlyMap<ComponentName, Component>;
  readonly #tidy: () => Promise<void>;
  readonly #runner: () => Runner | undefined;
  #stopping: Promise<void> | undefined;

  constructor(
    info: ClusterInfo,
    components: ReadonlyMap<ComponentName, Component>,
    runner: () => Runner | undefined,
    tidy: () => Promise<void>,
  ) {
    super(info);
    this.#components = components;
    this.#runner = runner;
    this.#tidy = tidy;
  }

  /** Sends SIGKILL to the processes of a real pod; its kubelet restarts them. */
  crash(uid: string): void {
    this.#runner()?.crash(uid);
  }

  /** A component of the control plane, to break it: only in a cluster that a test owns. */
  component(name: ComponentName): Component {
    const component = this.#components.get(name);
    if (component === undefined) throw new Error(`this cluster runs without ${name}`);
    return component;
  }

  has(name: ComponentName): boolean {
    return this.#components.has(name);
  }

  /** Ends every process, waits until they are gone, and removes the data folder. */
  stop(): Promise<void> {
    this.close();
    this.#stopping ??= this.#tidy();
    return this.#stopping;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }
}

async function prepareComponents(
  binaries: Binaries,
  files: ClusterFiles,
  ports: Ports,
  watchdog: Watchdog,
  options: ClusterOptions,
): Promise<ReadonlyMap<ComponentName, Component>> {
  const without: readonly ComponentName[] = options.without ?? [];
  const home = join(files.folder, "home");
  mkdirSync(home, { recursive: true });
  const identities = new Identities(home, serverUrl(ports), files.authority.pem);
  const components = new Map<ComponentName, Component>();
  for (const name of COMPONENTS) {
    if (without.includes(name)) continue;
    const kubeconfig = await identities.kubeconfig(componentIdentity(name));
    const program = {
      name,
      command: binaries[name],
      args: componentArguments(name, files, ports, kubeconfig, options.flags?.[name] ?? []),
      log: join(files.folder, `${name}.log`),
      // Without the user's own settings, such as a proxy or a kubeconfig. Memory is cheaper here than garbage
      // collection, which takes a sixth of a control plane's CPU time with Go's default.
      env: { PATH: process.env["PATH"], HOME: home, GOGC: "400" },
    };
    components.set(
      name,
      new Component(program, watchdog, healthUrl(name, ports), files.authority.pem.certificate),
    );
  }
  return components;
}

/** Each needs the API server, which needs etcd. */
async function startComponents(components: ReadonlyMap<ComponentName, Component>): Promise<void> {
  await components.get("etcd")?.start();
  await components.get("kube-apiserver")?.start();
  const others = [...components].filter(([name]) => name !== "etcd" && name !== "kube-apiserver");
  await Promise.all(others.map(([, component]) => component.start()));
}

/** Until the controllers have created it, pods in `default` are refused. */
async function waitUsable(cluster: Cluster): Promise<void> {
  const path = "/api/v1/namespaces/default/serviceaccounts/default";
  await eventually(
    "the default service account",
    async () => (await cluster.request("GET", path)).status === 200,
    60_000,
  );
}

async function attempt(binaries: Binaries, options: ClusterOptions): Promise<Cluster> {
  const folder = makeDataFolder();
  const watchdog = new Watchdog(folder);
  const files = await writeFiles(folder, options.auditPolicy);
  writeStages(folder);
  const ports = await choosePorts();
  const routes = new Routes();
  const proxy = new EgressProxy(files.egressSocket, routes);
  await proxy.listen();
  const components = await prepareComponents(binaries, files, ports, watchdog, options);
  const info: ClusterInfo = {
    server: serverUrl(ports),
    ca: files.authority.pem,
    folder,
    kubectl: binaries.kubectl,
    auditLog: files.auditLog,
    egressSocket: files.egressSocket,
  };
  let runner: Runner | undefined;
  const tidy = async (): Promise<void> => {
    // The data is discarded, so no component needs to flush it. All are killed together: a test may have frozen the API
    // server, and only its end unblocks the components that wait for its response.
    await Promise.all([
      runner?.stop(),
      ...[...components.values()].map((component) => component.stop("at once")),
    ]);
    await proxy.close();
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
    await watchdog.leave();
  };
  const cluster = new Cluster(info, components, () => runner, tidy);
  try {
    await startComponents(components);
    if (components.has("kube-controller-manager")) await waitUsable(cluster);
    const server = await options.between?.(info.server);
    runner = new Runner(cluster, routes, watchdog, options.images, server);
    return cluster;
  } catch (error) {
    await cluster.stop();
    throw error;
  }
}

/** Starts a cluster, building its binaries the first time. */
export async function startCluster(options: ClusterOptions = {}): Promise<Cluster> {
  const binaries = await ensureBinaries();
  sweepAbandoned();
  for (let tried = 1; ; tried += 1) {
    try {
      return await attempt(binaries, options);
    } catch (error) {
      const used = error instanceof Error && error.message.includes("address already in use");
      if (!used || tried === ATTEMPTS) throw error;
    }
  }
}
