// One pod that runs for real, from its binding to its end.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { listAt, stringAt } from "../../../src/core/json.ts";
import type { Client } from "../access/client.ts";
import { podFolder } from "../access/pod-log.ts";
import { address, type Routes } from "../egress/routes.ts";
import { freePorts } from "../ports.ts";
import type { Watchdog } from "../processes/watchdog.ts";
import { Container } from "./container.ts";
import { KubeletApi } from "./kubelet-api.ts";
import { Mount } from "./mount.ts";
import { type ContainerSpec, containersOf, initContainersOf, type Pod, volumesOf } from "./pod-spec.ts";
import { type Images, programOf } from "./program.ts";
import { Reporter } from "./reporter.ts";
import { type ContainerReport, type PodReport, statusOf } from "./status.ts";
import { Volumes } from "./volumes.ts";

/** How soon a changed ConfigMap or Secret is written to the files. A kubelet takes up to a minute. */
const REFRESH_MS = 1000;
const HOST_IP = "10.0.0.1";

export interface PodSurroundings {
  readonly client: Client;
  readonly routes: Routes;
  readonly watchdog: Watchdog;
  readonly images: Images;
  readonly folder: string;
  readonly server: string;
  readonly podIP: string;
}

export class PodRun {
  readonly #pod: Pod;
  readonly #around: PodSurroundings;
  readonly #api: KubeletApi;
  readonly #volumes: Volumes;
  readonly #mounts = new Map<string, Mount>();
  readonly #reporter: Reporter;
  readonly #folder: string;
  readonly #init: Container[];
  readonly #containers: Container[];
  readonly #startTime = new Date().toISOString();
  readonly #ports = new Map<number, number>();
  readonly #stop = new AbortController();
  readonly #gone = new AbortController();
  readonly #running: Promise<void>;
  #ending: Promise<void> | undefined;

  constructor(pod: Pod, around: PodSurroundings) {
    this.#pod = pod;
    this.#around = around;
    const { namespace, name, uid } = pod.metadata;
    this.#folder = podFolder(around.folder, namespace, name, uid);
    mkdirSync(this.#folder, { recursive: true });
    this.#api = new KubeletApi(around.client, pod);
    this.#volumes = new Volumes(pod, this.#api, around.podIP, HOST_IP);
    this.#reporter = new Reporter(
      () => statusOf(this.#report()),
      (status) => this.#api.writeStatus(status),
    );
    const { restartPolicy } = pod.spec;
    // An init container has to succeed: restartPolicy Always means until it does.
    this.#init = initContainersOf(pod).map((spec) =>
      this.#container(spec, restartPolicy === "Never" ? "Never" : "OnFailure"),
    );
    this.#containers = containersOf(pod).map((spec) => this.#container(spec, restartPolicy));
    this.#running = this.#run().finally(() => this.#unroute());
  }

  /** Ends the pod within its grace period, reports the last status and removes the pod. */
  end(graceSeconds: number): void {
    this.#ending ??= (async () => {
      this.#stop.abort();
      await Promise.all(
        [...this.#init, ...this.#containers].map((container) => container.end(graceSeconds * 1000)),
      );
      await this.#running;
      await this.#reporter.report();
      this.#reporter.close();
      await this.#remove();
    })();
  }

  /** All its processes are killed at once, and restarted. */
  crash(): void {
    for (const container of this.#containers) container.kill();
  }

  /** Ends the pod at once without a report: the pod, or the whole cluster, is gone. */
  async kill(): Promise<void> {
    this.#gone.abort();
    this.#reporter.close();
    this.#stop.abort();
    await Promise.all([...this.#init, ...this.#containers].map((container) => container.end(0)));
    await this.#running;
  }

  /** Repeated, because the API server may be down. */
  async #remove(): Promise<void> {
    while (!this.#gone.signal.aborted) {
      try {
        await this.#api.remove();
        return;
      } catch {
        await sleep(REFRESH_MS, undefined, { signal: this.#gone.signal }).catch(() => undefined);
      }
    }
  }

  async #run(): Promise<void> {
    await this.#choosePorts();
    await this.#prepareVolumes();
    for (const container of this.#init) {
      if (this.#stop.signal.aborted) return;
      await container.run();
      if (failed(container.report())) return;
    }
    if (this.#stop.signal.aborted) return;
    void this.#refreshVolumes();
    await Promise.all(this.#containers.map((container) => container.run()));
    this.#stop.abort();
    await this.#reporter.report();
  }

  async #choosePorts(): Promise<void> {
    const wanted = containersOf(this.#pod).flatMap(({ ports = [] }) =>
      ports.map(({ containerPort }) => containerPort),
    );
    const free = await freePorts(wanted.length);
    for (const [index, port] of wanted.entries()) {
      const local = free[index] ?? 0;
      this.#ports.set(port, local);
      this.#around.routes.set(address(this.#around.podIP, port), local);
    }
  }

  #unroute(): void {
    for (const port of this.#ports.keys()) this.#around.routes.delete(address(this.#around.podIP, port));
  }

  /** Waits, as a kubelet does, until everything that is mounted exists. */
  async #prepareVolumes(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      try {
        await this.#fillVolumes();
        return;
      } catch {
        void this.#reporter.report();
        await sleep(REFRESH_MS, undefined, { signal: this.#stop.signal }).catch(() => undefined);
      }
    }
  }

  async #fillVolumes(): Promise<void> {
    for (const volume of volumesOf(this.#pod)) {
      const mount = this.#mounts.get(volume.name) ?? new Mount(this.#volumeFolder(volume.name));
      this.#mounts.set(volume.name, mount);
      const files = await this.#volumes.files(volume);
      if (files === undefined) mount.share();
      else mount.write(files);
    }
  }

  async #refreshVolumes(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      await sleep(REFRESH_MS, undefined, { signal: this.#stop.signal }).catch(() => undefined);
      // A volume whose source is gone or unreadable stays as it was.
      if (!this.#stop.signal.aborted) await this.#fillVolumes().catch(() => undefined);
    }
  }

  #volumeFolder(name: string): string {
    return join(this.#folder, "volumes", name);
  }

  #container(spec: ContainerSpec, restart: "Always" | "OnFailure" | "Never"): Container {
    const { podIP, images, server } = this.#around;
    const named = new Map((spec.ports ?? []).map(({ name, containerPort }) => [name, containerPort]));
    return new Container({
      spec,
      restart,
      watchdog: this.#around.watchdog,
      changed: () => void this.#reporter.report(),
      localPort: (port) => {
        const number = typeof port === "number" ? port : (named.get(port) ?? 0);
        return this.#ports.get(number) ?? number;
      },
      program: (command) =>
        programOf(command === undefined ? spec : { ...spec, command, args: [] }, {
          pod: this.#pod,
          api: this.#api,
          folder: this.#folder,
          ports: this.#ports,
          podIP,
          hostIP: HOST_IP,
          server: new URL(server),
          images,
          volumeFolder: (name) => this.#volumeFolder(name),
          starting: command === undefined,
        }),
    });
  }

  #report(): PodReport {
    const gates = listAt(this.#pod, "spec", "readinessGates").map(
      (gate) => stringAt(gate, "conditionType") ?? "",
    );
    return {
      init: this.#init.map((container) => container.report()),
      containers: this.#containers.map((container) => container.report()),
      podIP: this.#around.podIP,
      hostIP: HOST_IP,
      startTime: this.#startTime,
      readinessGates: gates,
    };
  }
}

function failed({ state }: ContainerReport): boolean {
  return state.kind === "terminated" && state.exitCode !== 0;
}
