// The harness's kubelet and kube-proxy, for pods that run for real: those with the label `usher.dev/run: "true"` that
// the scheduler has bound to a node. Each container is a local process with its files, environment and token
// (`runner/rewrite.ts` explains how paths and ports are made local). Status, readiness, restarts and termination follow
// a kubelet, and are written as the pod's node. A Service reaches the ready ones through the API server's egress proxy.
// Not supported: sidecar init containers, `kubectl logs` and `exec` (see `podLog`), limits of memory and CPU.
import type { JsonObject } from "../../src/core/json.ts";
import { stringAt } from "../../src/core/json.ts";
import type { ClusterAccess } from "./access/access.ts";
import { type Objects, Watch } from "./access/watch.ts";
import type { Routes } from "./egress/routes.ts";
import type { Watchdog } from "./processes/watchdog.ts";
import { RUN_LABEL } from "./runner/label.ts";
import { PodRun } from "./runner/pod.ts";
import type { Pod } from "./runner/pod-spec.ts";
import type { Images } from "./runner/program.ts";
import { serviceRoutes } from "./runner/services.ts";

export type { Images } from "./runner/program.ts";

/** `bin/usher` as the image's entry point, on the Node that runs the tests. */
const USHER: Images = { usher: ["node", "src/cli/main.ts"] };

function isBound(object: JsonObject): object is Pod {
  return Boolean(stringAt(object, "spec", "nodeName"));
}

function isOver(pod: Pod): boolean {
  const phase = stringAt(pod, "status", "phase");
  return phase === "Succeeded" || phase === "Failed";
}

export class Runner {
  readonly #cluster: ClusterAccess;
  readonly #routes: Routes;
  readonly #watchdog: Watchdog;
  readonly #images: Images;
  readonly #server: string;
  readonly #runs = new Map<string, PodRun>();
  readonly #watches: readonly Watch[];
  readonly #killed = new Set<Promise<void>>();
  #services: Objects = new Map();
  #slices: Objects = new Map();
  #addresses = 0;

  /** `server`: the API server's address for pods. */
  constructor(
    cluster: ClusterAccess,
    routes: Routes,
    watchdog: Watchdog,
    images: Images = {},
    server: string = cluster.server,
  ) {
    this.#cluster = cluster;
    this.#server = server;
    this.#routes = routes;
    this.#watchdog = watchdog;
    this.#images = { ...USHER, ...images };
    const { client } = cluster;
    this.#watches = [
      new Watch(client, "/api/v1/pods", `labelSelector=${encodeURIComponent(`${RUN_LABEL}=true`)}`, (pods) =>
        this.#sync(pods),
      ),
      new Watch(client, "/api/v1/services", "", (services) => {
        this.#services = services;
        this.#route();
      }),
      new Watch(client, "/apis/discovery.k8s.io/v1/endpointslices", "", (slices) => {
        this.#slices = slices;
        this.#route();
      }),
    ];
  }

  async stop(): Promise<void> {
    await Promise.all(this.#watches.map((watch) => watch.stop()));
    await Promise.all([...this.#runs.values()].map((run) => run.kill()));
    await Promise.all(this.#killed);
  }

  /** Sends SIGKILL to the processes of the pod with this uid. */
  crash(uid: string): void {
    const run = this.#runs.get(uid);
    if (run === undefined) throw new Error(`no pod with the uid ${uid} runs`);
    run.crash();
  }

  #sync(pods: Objects): void {
    for (const [uid, pod] of pods) {
      if (!isBound(pod)) continue;
      const { deletionTimestamp, deletionGracePeriodSeconds = 0 } = pod.metadata;
      const run = this.#runs.get(uid);
      if (deletionTimestamp !== undefined) (run ?? this.#start(uid, pod)).end(deletionGracePeriodSeconds);
      else if (run === undefined && !isOver(pod)) this.#start(uid, pod);
    }
    for (const [uid, run] of this.#runs) {
      if (pods.has(uid)) continue;
      this.#runs.delete(uid);
      const killing = run.kill().finally(() => this.#killed.delete(killing));
      this.#killed.add(killing);
    }
  }

  #start(uid: string, pod: Pod): PodRun {
    const { client, info } = this.#cluster;
    this.#addresses += 1;
    // Unrouted addresses, as in any pod network; an EndpointSlice would reject a loopback address.
    const podIP = `10.245.${Math.floor(this.#addresses / 250) % 250}.${(this.#addresses % 250) + 1}`;
    const run = new PodRun(pod, {
      client,
      routes: this.#routes,
      watchdog: this.#watchdog,
      images: this.#images,
      folder: info.folder,
      server: this.#server,
      podIP,
    });
    this.#runs.set(uid, run);
    return run;
  }

  #route(): void {
    this.#routes.setServices(serviceRoutes(this.#services.values(), this.#slices.values()));
  }
}
