/**
 * The world of a simulation: two API servers over one store, the controllers of Kubernetes, usher's replicas and its
 * watchdog as processes, and the people and programs that call. Replicas are assembled as `usher serve --operate`
 * assembles them; left out are sockets, TLS and the ops port. The world calls their review handler, and does the
 * kubelet's and the endpoint controller's part.
 */

import { afterResponse } from "../../src/admission/review/after-response.ts";
import { type Handle, ReviewHandler } from "../../src/admission/review/handle.ts";
import { makeCertificate, type OwnCertificate } from "../../src/admission/tls/certificate.ts";
import type { Configuration } from "../../src/cli/configuration/configuration.ts";
import { type LiveSource, openLive, REQUEST_SECONDS } from "../../src/cli/source/live.ts";
import type { Client } from "../../src/cluster/client/client.ts";
import { EventRecorder } from "../../src/cluster/events/event-recorder.ts";
import { at, isObject, type Json, type JsonObject, listAt, stringAt } from "../../src/core/json.ts";
import type { Log } from "../../src/core/log.ts";
import { askedName } from "../../src/core/module/hook.ts";
import { serviceNames } from "../../src/core/registration/certificates.ts";
import { registeredKinds } from "../../src/core/registration/index.ts";
import { anchor } from "../../src/core/registration/managed-objects.ts";
import { labelled, OWN_NAMES } from "../../src/core/registration/names.ts";
import { modules } from "../../src/modules/all.ts";
import { dataOf, trusts } from "../../src/operator/certificates/certificate-record.ts";
import { rotated } from "../../src/operator/certificates/path-tokens.ts";
import { Objects } from "../../src/operator/install/apply.ts";
import { leftoversOf, removeLeftovers } from "../../src/operator/uninstall/leftovers.ts";
import { Watchdog } from "../../src/operator/watchdog/watchdog.ts";
import type { WebhookCall } from "./api-server/admission.ts";
import { ApiServer } from "./api-server/api-server.ts";
import { Controllers } from "./api-server/controllers.ts";
import { Store } from "./api-server/store.ts";
import { assemblyOf, BASE, CONFIGURATIONS } from "./configurations.ts";
import { GOOD_LINK, type Link, Network, type ServerRequest } from "./network.ts";
import type { History } from "./pod-checks.ts";
import { activate, EPOCH, Runtime, SimulatedProcess } from "./runtime.ts";
import { type Call, DOMAIN, describe, type Fault, type Scenario, WARM_UP_MS, WATCHDOG } from "./scenario.ts";
import {
  ADMIN,
  controlWorkloads,
  INFRA,
  LAB,
  PLACEMENTS,
  POOL_KEY,
  PROTECTED,
  performTenantCall,
  type Review,
  SHOP,
} from "./tenants.ts";

export const NAMESPACE = "usher-system";
export const USHER = "system:serviceaccount:usher-system:usher";
export const RULES_NAMESPACE = "cluster-config";
const ACCOUNT = { username: USHER, groups: ["system:serviceaccounts", "system:authenticated"] };
export const WATCHDOG_USER = "system:serviceaccount:usher-system:usher-watchdog";
const WATCHDOG_ACCOUNT = {
  username: WATCHDOG_USER,
  groups: ["system:serviceaccounts", "system:authenticated"],
};

export const LIMITS = "projectrequestlimits.operator.project.openshift.io";

/** How long a replica that is being replaced keeps serving. */
const DRAIN_MS = 3_000;

/** Three replicas, one after the other, each of which waits for hooks to be withdrawn. */
const ROLLED_OUT_MS = 180_000;

/** A probe of the kubelet. */
const PROBE_MS = 1_000;

/** The leader sees what lasts for this long. */
const SEEN_MS = 4_000;

/** Events reach a replica within milliseconds; its view is updated in slices. */
export const VIEW_MS = 2_000;

/** A dead watch is noticed within 25 s by a clock that may be slow, and is opened again. */
const DEAD_WATCH_MS = 40_000;

/** A watch that has ended is opened again. */
const REOPENED_MS = 5_000;

/** From the beginning of a fault, how long the view of a replica may be old; `undefined` if the fault delays no event. */
function viewDelay(fault: Fault): number | undefined {
  switch (fault.fault) {
    case "half-open":
      return DEAD_WATCH_MS;
    case "silence":
    // Meanwhile a watch that ends is not opened again, and after it the backoff may be as long.
    case "cut":
    case "busy":
    case "lose answers":
    case "freeze":
      return fault.forMs + DEAD_WATCH_MS;
    case "delay":
      return fault.forMs + 2 * fault.delayMs + REOPENED_MS;
    case "stall":
      return fault.forMs + REOPENED_MS;
    case "lag":
      return fault.forMs + fault.lagMs + REOPENED_MS;
    case "reset":
    case "switch":
    case "compact":
      return REOPENED_MS;
    default:
      return undefined;
  }
}

/** Every replica has found the new certificate, even after the longest fault. */
const REISSUED_MS = 60_000;

/** Signing takes real time and other threads, so pairs are issued before, and given out in order. */
const pairs: OwnCertificate[] = [];
let oldPair: OwnCertificate | undefined;
const PAIRS = 8;
const DAY_MS = 86_400_000;

export async function issuePairs(): Promise<void> {
  const names = serviceNames(OWN_NAMES.service, NAMESPACE);
  while (pairs.length < PAIRS) pairs.push(await makeCertificate(names, EPOCH));
  // It is due for renewal when 90 of its 364 days are left: half a minute after the start.
  oldPair ??= await makeCertificate(names, EPOCH - 274 * DAY_MS + 30_000);
}

const definitions = new Map<string, readonly JsonObject[]>();

/** They are the same in every run, and making them takes longer than all other objects of the start. */
function definitionsOf(assembly: Parameters<typeof registeredKinds>[0]): readonly JsonObject[] {
  const names = assembly.modules.map(({ name }) => name).join(" ");
  const known = definitions.get(names) ?? registeredKinds(assembly, "0.1.0");
  definitions.set(names, known);
  return known;
}

/** One pod of usher, over restarts of its container. */
export interface Pod {
  readonly name: string;
  readonly owner: JsonObject;
  /** The configuration that its container has read. */
  configuration: Configuration;
  process: SimulatedProcess;
  live?: LiveSource;
  handle?: Handle;
  after?: ReturnType<typeof afterResponse>;
  isTerminating: boolean;
}

interface WorldOptions {
  /** Called with each line of the history. */
  readonly trace?: (line: string) => void;
}

export class World {
  readonly scenario: Scenario;
  readonly runtime: Runtime;
  readonly store = new Store();
  readonly servers: readonly ApiServer[];
  readonly network: Network;
  readonly pods = new Map<string, Pod>();
  /** The stored configuration, which a container reads when it starts. */
  configuration: Configuration;
  /** Requests about pods and workloads that are under way, by resource and object. */
  readonly reviews = new Map<string, Review>();
  /** Called with the answer to a request about a pod or a workload. */
  answered: (review: Review, status: number, message: string) => void = () => undefined;
  history: History | undefined;
  /** The limits that were stored, and when. */
  readonly limits: { readonly at: number; readonly max: number }[] = [];
  /** Writes of usher's processes that were processed, in order, each with its number; without leases and events. */
  readonly writes: {
    readonly process: string;
    readonly what: string;
    readonly number: number;
    /** The number of the last request of the process that was processed when this one was sent. */
    readonly sentAfter: number;
    readonly at: number;
  }[] = [];
  /** Called with the answer to the creation of a project. */
  createdProject: (user: string, started: number, message: string) => void = () => undefined;
  /** The tokens in paths of webhooks by which a call failed: because no replica was ready for seconds, or without an answer in time. */
  readonly exposed = new Set<string>();
  /** When usher admitted a project, by the request that creates it. */
  readonly admitted = new Map<string, number>();
  /** The requests that created a project which usher has admitted in time, and thus counted. */
  readonly counted = new Set<string>();
  /** Processes that should have crashed at a write, and never made it. */
  missedCrashes: readonly string[] = [];
  /** When the last rollout of a configuration ended. */
  rolledOut = 0;
  watchdog: SimulatedProcess | undefined;
  readonly #slots = new Map<string, string>();
  /** How far the wall clock of each machine has jumped. */
  readonly #jumped = new Map<string, number>();
  readonly #random: () => number;
  readonly #trace: (line: string) => void;
  #issued = 0;
  #lagMs = 0;
  #slowMs = 0;
  #generation = 1;
  #refused = false;
  #requests = 0;
  #rolling = 0;
  #secretDeleted = Number.NEGATIVE_INFINITY;

  constructor(scenario: Scenario, options: WorldOptions = {}) {
    this.scenario = scenario;
    const runtime = new Runtime(`seed ${scenario.seed}`);
    this.runtime = runtime;
    this.#random = runtime.randomFor("world");
    const { trace } = options;
    this.#trace =
      trace === undefined
        ? () => undefined
        : (line) => trace(`${(runtime.now / 1_000).toFixed(4).padStart(9)} ${line}`);
    this.configuration = this.#openable(scenario.configuration ?? BASE);
    const common = {
      now: () => EPOCH + runtime.now,
      random: runtime.randomFor("API servers"),
      schedule: (ms: number, run: () => void) => runtime.schedule(ms, run),
      callWebhook: (review: JsonObject, webhook: WebhookCall) => this.#callWebhook(review, webhook),
      slowMs: (resource: string) => (resource === "namespaces" ? this.#slowMs : 0),
      ...(scenario.paged === true ? { pageSize: 2, streamsLists: false } : {}),
    };
    this.servers = [
      new ApiServer(this.store, common),
      new ApiServer(this.store, { ...common, lag: () => this.#lagMs }),
    ];
    const [first] = this.servers as [ApiServer];
    new Controllers(this.store, first, {
      schedule: common.schedule,
      delay: () => 50 + 2_000 * this.#random(),
    });
    this.network = new Network(runtime, this.servers, this.#trace);
    const crashes = new Map<string, { left: number; forMs: number }>();
    this.#crashesAtWrite = crashes;
    this.network.onProcessed = ({ process, method, path, number: request, sentAfter }) => {
      const { name } = process;
      for (const fault of scenario.faults)
        if (fault.fault === "freeze at request" && fault.process === name && fault.request === request)
          this.#freeze(process, fault.forMs, false);
      if (method === "GET" || /\/(leases|events)(\/|\?|$)/.test(path)) return;
      const number = 1 + this.writes.filter((one) => one.process === name).length;
      this.writes.push({
        process: name,
        what: `${method} ${path.replace(/\?.*/, "")}`,
        number,
        sentAfter,
        at: runtime.now,
      });
      const due = crashes.get(process.name);
      if (due === undefined || --due.left > 0) return;
      crashes.delete(process.name);
      this.#crash(process.name, due.forMs);
    };
    this.store.subscribe(({ type, resource, key, by, revision, object }) => {
      this.#trace(`  stored ${revision} ${type} ${resource} ${key} by ${by}`);
      // A leader that creates them again does not know of the calls before.
      if (type === "DELETED" && resource.includes("webhookconfigurations")) this.exposed.clear();
      const max = at(object, "spec", "limits", 0, "maxProjects");
      if (resource === LIMITS && typeof max === "number") this.limits.push({ at: runtime.now, max });
    });
  }

  readonly #crashesAtWrite: Map<string, { left: number; forMs: number }>;

  note(line: string): void {
    this.#trace(line);
  }

  /** Runs to the end of calls and faults, with everything repaired. */
  async run(): Promise<void> {
    activate(this.runtime);
    const { scenario, runtime } = this;
    await this.#prepare();
    for (const name of scenario.replicas) {
      this.#slots.set(name, name);
      await this.#createPod(name);
    }
    this.network.link(WATCHDOG).server = this.#serverOf(WATCHDOG);
    this.#startWatchdog();
    this.#probe();
    controlWorkloads(this);
    for (const call of scenario.calls)
      runtime.schedule(call.at - runtime.now, () => void this.#callUntilDone(call));
    for (const fault of scenario.faults) runtime.schedule(fault.at - runtime.now, () => this.#break(fault));
    await runtime.run(WARM_UP_MS + scenario.activeMs);
    this.#repair();
  }

  /** The time of the oldest state that a replica may still have seen at this time. `pods`: the replicas that may be concerned. */
  oldestView(time: number, pods: Iterable<Pod> = this.pods.values()): number {
    const slots = new Set([...pods].map(({ name }) => slotOf(name)));
    let oldest = time;
    // A view that one fault has made old stays old through those that follow before it is current again.
    for (const fault of this.scenario.faults.toReversed()) {
      const delayedMs = fault.process === "" || slots.has(fault.process) ? viewDelay(fault) : undefined;
      if (delayedMs !== undefined && fault.at <= oldest && oldest <= fault.at + delayedMs) oldest = fault.at;
    }
    return oldest - VIEW_MS;
  }

  // ——— the cluster ———

  async #prepare(): Promise<void> {
    // Kinds stay when a module is switched off.
    const assembly = assemblyOf(BASE);
    const namespaces = [
      "default",
      "kube-system",
      "kube-node-lease",
      NAMESPACE,
      RULES_NAMESPACE,
      SHOP,
      LAB,
      INFRA,
    ];
    const objects: (readonly [string, JsonObject])[] = [
      ...namespaces.map(
        (name) =>
          [
            "/api/v1/namespaces",
            {
              apiVersion: "v1",
              kind: "Namespace",
              metadata: { name, ...(name === SHOP ? { labels: { env: "prod" } } : {}) },
            },
          ] as const,
      ),
      ...definitionsOf(assembly).map(
        (crd) => ["/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd] as const,
      ),
      ["/apis/rbac.authorization.k8s.io/v1/clusterroles", labelled(anchor(), "0.1.0")],
      [
        `/apis/apps/v1/namespaces/${NAMESPACE}/deployments`,
        {
          apiVersion: "apps/v1",
          kind: "Deployment",
          metadata: { name: "usher", namespace: NAMESPACE },
          spec: {
            selector: { matchLabels: { app: "usher" } },
            template: {
              metadata: { labels: { app: "usher" } },
              spec: { containers: [{ name: "usher", image: "usher" }] },
            },
          },
        },
      ],
      [
        `/api/v1/namespaces/${NAMESPACE}/configmaps`,
        {
          apiVersion: "v1",
          kind: "ConfigMap",
          metadata: { name: OWN_NAMES.configuration, namespace: NAMESPACE },
        },
      ],
    ];
    for (const [path, object] of objects) await this.send(ADMIN, "POST", path, object);
    if (this.scenario.renewal && oldPair !== undefined) {
      const record = {
        current: oldPair,
        next: undefined,
        previous: undefined,
        paths: rotated(undefined, EPOCH),
      };
      await this.send(ADMIN, "POST", `/api/v1/namespaces/${NAMESPACE}/secrets`, {
        apiVersion: "v1",
        kind: "Secret",
        type: "kubernetes.io/tls",
        metadata: { name: OWN_NAMES.certificates, namespace: NAMESPACE },
        data: dataOf(record),
      });
    }
    // CRDs are established by then.
    await this.runtime.run(this.runtime.now + 3_000);
    await this.#setLimit(this.scenario.limit);
    await this.perform({
      at: 0,
      call: "set rule",
      name: "pool",
      pattern: "edge-.*",
      value: "a",
      taint: true,
    });
    await this.perform({ at: 0, call: "set ownership" });
    for (const name of ["edge-1", "core-1"]) await this.perform({ at: 0, call: "join node", name });
  }

  /** The watchdog may open the hooks of project-limit in some scenarios. */
  #openable(configuration: Configuration): Configuration {
    const open = [
      ...(configuration.watchdog?.open ?? []),
      ...(this.scenario.openable ? ["project-limit"] : []),
    ];
    return { ...configuration, watchdog: { ...configuration.watchdog, open } };
  }

  async send(
    user: ServerRequest["user"],
    method: string,
    path: string,
    body?: Json,
    contentType = "application/json",
  ) {
    const server = this.servers[this.#random() < 0.5 ? 0 : 1] as ApiServer;
    const answer = server.handle({
      method,
      path,
      ...(user === undefined ? {} : { user }),
      ...(body === undefined ? {} : { body, contentType }),
    });
    // An answer may need events, such as a call of a webhook.
    const response = await answer;
    const message = response.status >= 400 ? ` ${stringAt(response.body, "message") ?? ""}` : "";
    this.#trace(`${user?.username} ${method} ${path} → ${response.status}${message}`);
    if (response.status >= 400 && ![404, 409].includes(response.status) && isVital(method, path))
      this.runtime.fail(`${method} ${path} was answered ${response.status}${message}`);
    this.#refused ||= response.status >= 400 && ![404, 409].includes(response.status);
    return response;
  }

  // ——— usher's processes ———

  async #createPod(name: string): Promise<void> {
    const path = `/api/v1/namespaces/${NAMESPACE}/pods`;
    const stored = await this.send(ADMIN, "POST", path, {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name, namespace: NAMESPACE, labels: { app: "usher" } },
      spec: { containers: [{ name: "usher", image: "usher" }] },
    });
    const uid = stringAt(stored.body, "metadata", "uid") ?? "";
    const owner = { apiVersion: "v1", kind: "Pod", name, uid };
    const { configuration } = this;
    this.network.link(name).server = this.#serverOf(name);
    const pod: Pod = { name, owner, configuration, process: this.#process(name), isTerminating: false };
    this.pods.set(name, pod);
    this.#start(pod);
  }

  #serverOf(name: string): number {
    return this.scenario.servers?.[slotOf(name)] ?? 0;
  }

  /** A machine keeps its wall clock when a process ends. */
  #process(name: string): SimulatedProcess {
    const { rate, wallOffset } = this.scenario.clocks[slotOf(name)] ?? { rate: 1, wallOffset: 0 };
    const jumped = this.#jumped.get(slotOf(name)) ?? 0;
    return new SimulatedProcess(this.runtime, name, { rate, wallOffset: wallOffset + jumped });
  }

  #start(pod: Pod): void {
    delete pod.live;
    delete pod.handle;
    const { process } = pod;
    this.#trace(`${pod.name} starts`);
    const boot = async () => {
      const log = this.#log(pod.name);
      const client = this.network.clientOf(process, ACCOUNT, REQUEST_SECONDS * 1_000);
      const issue = async () => pairs[this.#issued++ % pairs.length] as OwnCertificate;
      const live = await openLive(
        client,
        { operate: true },
        assemblyOf(pod.configuration),
        log,
        { files: undefined, issue },
        { identity: pod.name, owner: pod.owner },
      );
      pod.handle = new ReviewHandler({ source: live.source, log, acceptsToken: live.acceptsToken }).handle;
      pod.after = afterResponse({ log, count: () => undefined, effects: live.effects });
      pod.live = live;
      live.start(() => undefined);
      this.#trace(`${pod.name} serves`);
    };
    process.run(() =>
      boot().catch((error: unknown) =>
        this.runtime.fail(`${pod.name} failed to start: ${error instanceof Error ? error.stack : error}`),
      ),
    );
  }

  #startWatchdog(): void {
    const {
      enabled = true,
      openAfterSeconds = 300,
      fallbackAfterSeconds = 15,
    } = this.configuration.watchdog ?? {};
    if (!enabled) return;
    const process = this.#process(WATCHDOG);
    this.watchdog = process;
    process.run(() => {
      const client = this.network.clientOf(process, WATCHDOG_ACCOUNT, 10_000);
      const events = new EventRecorder({ client, instance: WATCHDOG });
      const watchdog = new Watchdog({
        client,
        namespace: NAMESPACE,
        openAfterMs: openAfterSeconds * 1_000,
        fallbackAfterMs: fallbackAfterSeconds * 1_000,
        log: this.#log(WATCHDOG),
        publish: (all) => events.add(all),
      });
      void watchdog.run(new AbortController().signal);
    });
  }

  #log(name: string): Log {
    const line = (level: string) => (facts: object, message: string) => {
      const text = `${name} ${level} ${message} ${JSON.stringify(facts)}`;
      this.#trace(text);
      if (level !== "info" && PROGRAMMING_ERROR.test(text)) this.runtime.fail(text);
    };
    return { debug: () => undefined, info: line("info"), warn: line("warn"), error: line("error") };
  }

  #crash(name: string, forMs: number): void {
    const process = name === WATCHDOG ? this.watchdog : this.pods.get(name)?.process;
    if (process === undefined || !process.alive) return;
    process.crash();
    this.network.abandon(name);
    this.#trace(`${name} crashed`);
    this.runtime.schedule(forMs, () => this.#restart(name));
  }

  /** All replicas end, and none starts again. */
  stopReplicas(): void {
    for (const { name, process } of this.pods.values()) {
      process.crash();
      this.network.abandon(name);
      this.#trace(`${name} ended`);
    }
  }

  #freeze(process: SimulatedProcess, forMs: number, timersFirst: boolean): void {
    process.freeze();
    this.runtime.schedule(forMs, () => process.thaw(timersFirst));
  }

  #restart(name: string): void {
    if (name === WATCHDOG) {
      if (this.watchdog?.alive === false) this.#startWatchdog();
      return;
    }
    const pod = this.pods.get(name);
    // The kubelet starts no container of a pod that is deleted.
    if (pod === undefined || pod.isTerminating || pod.process.alive) return;
    pod.process = this.#process(name);
    pod.configuration = this.configuration;
    this.#start(pod);
  }

  async #rollOut(slot: string): Promise<void> {
    const old = this.pods.get(this.#slots.get(slot) ?? "");
    if (old === undefined || old.isTerminating) return;
    old.isTerminating = true;
    await this.#createNext(slot);
    await this.#terminate(old);
  }

  async #createNext(slot: string): Promise<string> {
    this.#generation += 1;
    const next = `${slot}-${this.#generation}`;
    this.#slots.set(slot, next);
    await this.#createPod(next);
    return next;
  }

  async #terminate(old: Pod): Promise<void> {
    old.isTerminating = true;
    await this.runtime.pause(DRAIN_MS);
    const { process, live } = old;
    let ended = false;
    const end = async () => {
      if (ended) return;
      ended = true;
      process.crash();
      this.pods.delete(old.name);
      this.#trace(`${old.name} ended`);
      await this.send(ADMIN, "DELETE", `/api/v1/namespaces/${NAMESPACE}/pods/${old.name}`);
    };
    // The kubelet kills a container that does not end within its grace period.
    this.runtime.schedule(30_000, () => void end());
    if (live === undefined || !process.alive) {
      void end();
      return;
    }
    // A frozen process gets the signal when it continues.
    this.runtime.schedule(
      0,
      () => void live.stop().then(() => this.runtime.schedule(1, () => void end())),
      process,
    );
  }

  /** As `usher install` with another configuration: it removes what modules leave behind, and rolls the replicas out. */
  async configure(configuration: Configuration): Promise<void> {
    this.#rolling += 1;
    await this.#configure(configuration);
    this.#rolling -= 1;
  }

  /** Runs until no rollout is under way. */
  async untilRolledOut(): Promise<void> {
    const { runtime } = this;
    const limit = runtime.now + ROLLED_OUT_MS;
    while (this.#rolling > 0 && runtime.failure === undefined) {
      if (runtime.now > limit) runtime.fail(`a rollout has not ended after ${ROLLED_OUT_MS / 1_000} s`);
      await runtime.run(runtime.now + 500);
    }
  }

  async #configure(configuration: Configuration): Promise<void> {
    this.configuration = this.#openable(configuration);
    const { configuration: mine } = this;
    await this.#removeLeftovers(mine);
    for (const crd of definitionsOf(assemblyOf(mine)))
      await this.send(ADMIN, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd);
    this.watchdog?.crash();
    this.network.reset(WATCHDOG);
    this.#startWatchdog();
    for (const slot of this.#slots.keys()) {
      // Another configuration came, and is rolled out.
      if (this.configuration !== mine) return;
      await this.#replace(slot, mine);
    }
    // Until the last replica with a module is gone, its objects may come again.
    while (this.configuration === mine && [...this.pods.values()].some((pod) => pod.configuration !== mine))
      await this.runtime.pause(1_000);
    if (this.configuration !== mine) return;
    await this.#removeLeftovers(mine);
    this.rolledOut = this.runtime.now;
  }

  /** A Deployment replaces a pod by another one, and terminates it once the other one is ready. */
  async #replace(slot: string, configuration: Configuration): Promise<void> {
    const old = this.pods.get(this.#slots.get(slot) ?? "");
    if (old === undefined || old.isTerminating) return;
    const name = await this.#createNext(slot);
    for (;;) {
      const next = this.pods.get(name);
      if (next === undefined || next.isTerminating || this.isReady(next)) break;
      if (this.configuration !== configuration) break;
      await this.runtime.pause(500);
    }
    if (!old.isTerminating) await this.#terminate(old);
  }

  async #removeLeftovers(configuration: Configuration): Promise<void> {
    const client: Client = {
      server: "https://simulated.invalid",
      request: (method, path, { body, contentType } = {}) =>
        this.send(ADMIN, method, path, body, contentType),
      stream: () => Promise.reject(new Error("not used")),
      close: () => undefined,
    };
    const objects = new Objects(client);
    const leftovers = await leftoversOf(objects, modules, assemblyOf(configuration), []);
    await removeLeftovers(objects, leftovers);
  }

  // ——— kubelet and endpoint controller ———

  isReady({ process, live, isTerminating }: Pod): boolean {
    if (live === undefined || !process.alive || process.frozen || isTerminating) return false;
    return process.run(
      () =>
        live.source.ready &&
        live.certificate !== undefined &&
        live.trusts?.(live.certificate.current.cert) === true,
    );
  }

  #probe(): void {
    let last = "";
    const probe = async (): Promise<void> => {
      const endpoints = [...this.pods.values()].map((pod) => ({
        addresses: ["10.0.0.1"],
        targetRef: { kind: "Pod", name: pod.name, namespace: NAMESPACE },
        conditions: {
          ready: this.isReady(pod),
          serving: pod.handle !== undefined && pod.process.alive,
          terminating: pod.isTerminating,
        },
      }));
      const text = JSON.stringify(endpoints);
      if (text !== last) {
        const collection = `/apis/discovery.k8s.io/v1/namespaces/${NAMESPACE}/endpointslices`;
        const slice = {
          apiVersion: "discovery.k8s.io/v1",
          kind: "EndpointSlice",
          addressType: "IPv4",
          metadata: {
            name: "usher-1",
            namespace: NAMESPACE,
            labels: { "kubernetes.io/service-name": OWN_NAMES.service },
          },
          endpoints,
        };
        const user = { username: "system:kube-controller-manager", groups: ["system:masters"] };
        const answer =
          last === ""
            ? await this.send(user, "POST", collection, slice)
            : await this.send(user, "PUT", `${collection}/usher-1`, slice);
        if (answer.status < 300) last = text;
      }
      this.runtime.schedule(PROBE_MS, () => void probe());
    };
    this.runtime.schedule(0, () => void probe());
  }

  // ——— API servers call webhooks ———

  #endpoints(): readonly Json[] {
    const slice = this.store.get("endpointslices.discovery.k8s.io", `${NAMESPACE}/usher-1`);
    return listAt(slice, "endpoints").filter((one) => at(one, "conditions", "ready") === true);
  }

  /** By the stored endpoints, as kube-proxy routes. */
  #callWebhook(review: JsonObject, webhook: WebhookCall): Promise<JsonObject | { readonly failed: string }> {
    const { promise, resolve } = Promise.withResolvers<JsonObject | { readonly failed: string }>();
    const started = this.runtime.now;
    const ready = this.#endpoints();
    const name = stringAt(ready[Math.floor(this.#random() * ready.length)], "targetRef", "name");
    const pod = name === undefined ? undefined : this.pods.get(name);
    const path = stringAt(webhook.clientConfig, "service", "path") ?? "";
    const what = `${stringAt(review, "request", "operation")} ${stringAt(review, "request", "resource", "resource")} ${stringAt(review, "request", "name") ?? ""}`;
    const answer = (given: JsonObject | { readonly failed: string }): void => {
      const text =
        "failed" in given
          ? String(given["failed"])
          : at(given, "response", "allowed") === true
            ? "allowed"
            : `denied: ${stringAt(at(given, "response"), "status", "message")}`;
      this.#trace(`webhook ${webhook.name} ${what} → ${name ?? "no endpoint"}: ${text}`);
      if (text === "allowed" && pod !== undefined)
        this.#record(review, path, pod, started + webhook.timeoutMs);
      if (text === "allowed" && path.includes("/validate/") && webhook.name.includes("project-limit"))
        this.admitted.set(requestOf(at(review, "request", "object")), this.runtime.now);
      resolve(given);
    };
    if (pod === undefined) {
      // The leader looks every three seconds: it does not see each moment without a ready replica.
      this.runtime.schedule(SEEN_MS, () => {
        if (this.#endpoints().length === 0) this.exposed.add(path.split("/")[1] ?? "");
      });
      answer({ failed: "no endpoints available for service usher" });
      return promise;
    }
    const transit = () => this.network.transit(pod.name);
    const fail = (failed: string) => this.runtime.schedule(transit(), () => answer({ failed }));
    const closed: (() => void)[] = [];
    let isPending = false;
    const caller = { once: (_event: "close", listener: () => void) => void closed.push(listener) };
    const arrive = async (): Promise<void> => {
      const link = this.network.link(pod.name);
      if (link.silent) return;
      const { handle, live, process } = pod;
      if (link.cut || handle === undefined || live === undefined) {
        fail("connection refused");
        return;
      }
      const authority = live.certificate?.current as OwnCertificate | undefined;
      if (authority !== undefined && !trusts(stringAt(webhook.clientConfig, "caBundle"), authority.ca)) {
        // A deleted Secret means that its key has leaked: the old certificate is not trusted any more, wherever it is used.
        if (this.runtime.now - this.#secretDeleted > REISSUED_MS)
          this.runtime.fail(`${pod.name} serves a certificate that is not in the bundle of ${webhook.name}`);
        fail("x509: certificate signed by unknown authority");
        return;
      }
      isPending = true;
      const { body, status, evaluation } = await handle(
        Buffer.from(JSON.stringify(review)),
        `${path}?timeout=${webhook.timeoutMs / 1_000}s`,
        caller,
      );
      isPending = false;
      if (!process.alive) return;
      // A hook is registered only while every replica that serves has announced it, unless a fault delays the announcement.
      if (status === 404 && this.scenario.faults.length === 0)
        this.runtime.fail(`${pod.name} was asked by ${webhook.name}, which it does not have: ${body}`);
      const unknown = hooksIn(path).find(
        (one) => !live.source.assembly.hooks.some((hook) => askedName(hook) === one),
      );
      if (status === 200 && unknown !== undefined)
        this.runtime.fail(`${pod.name} answered by ${unknown}, a hook that it does not have`);
      if (evaluation?.unverified === true && this.runtime.now - this.#secretDeleted > REISSUED_MS)
        this.runtime.fail(`${pod.name} does not accept the path by which ${webhook.name} is called`);
      const deliver = () =>
        answer(status === 200 ? (JSON.parse(body) as JsonObject) : { failed: `status ${status}: ${body}` });
      if (link.silent) return;
      if (link.losesAnswers) fail("EOF");
      else this.runtime.schedule(transit(), deliver);
      if (evaluation !== undefined) pod.after?.(evaluation);
    };
    const { process } = pod;
    this.runtime.schedule(transit(), () => {
      if (!process.alive) fail("connection refused");
      else this.runtime.schedule(0, () => void arrive(), process);
    });
    // The API server closes the connection.
    this.runtime.schedule(webhook.timeoutMs, () => {
      const close = () => {
        // The server of a replica sees that a caller is gone which has no answer.
        if (isPending) {
          this.exposed.add(path.split("/")[1] ?? "");
          pod.live?.callFailed?.();
        }
        for (const listener of closed.splice(0)) listener();
      };
      this.runtime.schedule(transit(), close, process);
    });
    return promise;
  }

  /** Takes down which hooks have allowed a request, if the answer came in time. */
  #record(review: JsonObject, path: string, pod: Pod, deadline: number): void {
    if (this.runtime.now >= deadline) return;
    const { group = "", resource = "" } = (at(review, "request", "resource") ?? {}) as Record<string, string>;
    const subresource = stringAt(review, "request", "subResource");
    const stored = `${resource}${group === "" ? "" : `.${group}`}${subresource === undefined ? "" : `/${subresource}`}`;
    const key = `${stored} ${stringAt(review, "request", "namespace")}/${stringAt(review, "request", "name")}`;
    const asked = this.reviews.get(key)?.asked;
    for (const name of hooksIn(path)) asked?.set(name, (asked.get(name) ?? new Set()).add(pod));
  }

  // ——— calls ———

  /** A persistent caller repeats a failed call. */
  async #callUntilDone(call: Call): Promise<void> {
    for (let attempt = 0; attempt < 10; attempt++) {
      this.#refused = false;
      await this.perform(call);
      if (this.scenario.persistent !== true || !this.#refused) return;
      await this.runtime.pause(2_000);
    }
  }

  async perform(call: Call): Promise<void> {
    this.#trace(`call ${describe(call)}`);
    if (await performTenantCall(this, call)) return;
    switch (call.call) {
      case "create project": {
        const user = { username: call.user, groups: ["tenants", "system:authenticated"] };
        const query = call.dryRun === true ? "?dryRun=All" : "";
        const started = this.runtime.now;
        const answer = await this.send(
          user,
          "POST",
          `/api/v1/namespaces${query}`,
          this.#projectOf(call.name),
        );
        this.createdProject(call.user, started, stringAt(answer.body, "message") ?? "");
        return;
      }
      case "forge review":
        return this.#forge(call.user, call.name);
      case "delete project":
        await this.send(ADMIN, "DELETE", `/api/v1/namespaces/${call.name}`);
        return;
      case "set limit":
        return this.#setLimit(call.max);
      case "join node": {
        const user = {
          username: `system:node:${call.name}`,
          groups: ["system:nodes", "system:authenticated"],
        };
        await this.send(user, "POST", "/api/v1/nodes", joiningNode(call.name));
        return;
      }
      case "remove node":
        await this.send(ADMIN, "DELETE", `/api/v1/nodes/${call.name}`);
        return;
      case "label node":
        await this.send(
          ADMIN,
          "PATCH",
          `/api/v1/nodes/${call.name}`,
          { metadata: { labels: { [call.key]: call.value } } },
          "application/merge-patch+json",
        );
        return;
      case "churn node":
        return this.#churn(call.name, call.writes, call.what);
      case "taint node": {
        const live = this.store.get("nodes", call.name);
        const taints = [...listAt(live, "spec", "taints"), { key: call.key, effect: "NoSchedule" }];
        const resourceVersion = stringAt(live, "metadata", "resourceVersion") ?? "";
        if (
          live === undefined ||
          listAt(live, "spec", "taints").some((one) => stringAt(one, "key") === call.key)
        )
          return;
        await this.send(
          ADMIN,
          "PATCH",
          `/api/v1/nodes/${call.name}`,
          { metadata: { resourceVersion }, spec: { taints } },
          "application/merge-patch+json",
        );
        return;
      }
      case "set rule": {
        const path = `/apis/node-labels.openshift.io/v1beta1/namespaces/${RULES_NAMESPACE}/labels`;
        const spec = {
          nodeNamePatterns: [call.pattern],
          labels: { [`${DOMAIN}/${call.name}`]: call.value },
          ...(call.taint
            ? { taints: [{ key: `${DOMAIN}/${call.name}`, value: call.value, effect: "NoSchedule" }] }
            : {}),
        };
        await this.put(path, {
          apiVersion: "node-labels.openshift.io/v1beta1",
          kind: "Labels",
          metadata: { name: call.name, namespace: RULES_NAMESPACE },
          spec,
        });
        return;
      }
      case "delete rule":
        await this.send(
          ADMIN,
          "DELETE",
          `/apis/node-labels.openshift.io/v1beta1/namespaces/${RULES_NAMESPACE}/labels/${call.name}`,
        );
        return;
      case "set ownership": {
        const path = `/apis/node-labels.openshift.io/v1beta1/namespaces/${RULES_NAMESPACE}/ownedlabels`;
        await this.put(path, {
          apiVersion: "node-labels.openshift.io/v1beta1",
          kind: "OwnedLabels",
          metadata: { name: "sim", namespace: RULES_NAMESPACE },
          spec: { domain: DOMAIN },
        });
        return;
      }
      case "delete ownership":
        await this.send(
          ADMIN,
          "DELETE",
          `/apis/node-labels.openshift.io/v1beta1/namespaces/${RULES_NAMESPACE}/ownedlabels/sim`,
        );
        return;
      case "edit webhooks":
        return this.#editWebhooks(call.kind, call.how);
      case "delete lease":
        await this.send(
          ADMIN,
          "DELETE",
          `/apis/coordination.k8s.io/v1/namespaces/${NAMESPACE}/leases/${OWN_NAMES.lease}`,
        );
        return;
      case "delete certificate":
        this.#secretDeleted = this.runtime.now;
        await this.send(ADMIN, "DELETE", `/api/v1/namespaces/${NAMESPACE}/secrets/${OWN_NAMES.certificates}`);
        return;
      case "roll out":
        return this.#rollOut(call.replica);
      case "configure":
        return this.configure(CONFIGURATIONS[call.configuration] ?? BASE);
    }
  }

  /** Changes the policy `pool`, if there is one, after everything else. */
  changeLast(): void {
    const policy = this.store.get(PLACEMENTS, "pool");
    if (policy === undefined) return;
    const value = stringAt(policy, "spec", "nodeSelector", POOL_KEY) === "a" ? "b" : "a";
    const { onUpdate } = (policy["spec"] ?? {}) as { readonly onUpdate?: "Inject" | "Restore" };
    const call = {
      at: 0,
      call: "set placement",
      name: "pool",
      value,
      ...(onUpdate && { onUpdate }),
    } as const;
    void this.perform(call);
  }

  /** The status of a creation. */
  async tryProject(user: string, name: string): Promise<number> {
    const creator = { username: user, groups: ["tenants", "system:authenticated"] };
    const sent = this.send(creator, "POST", "/api/v1/namespaces", this.#projectOf(name));
    // A webhook has five seconds, and there are two.
    return (await this.runtime.waitFor(sent, 12_000))?.status ?? 0;
  }

  /** Without the token in the path of webhooks, which API servers have: it is answered, and takes no place. */
  async #forge(username: string, name: string): Promise<void> {
    const pod = [...this.pods.values()].find((one) => this.isReady(one));
    const { metadata, ...project } = this.#projectOf(name);
    const annotations = {
      ...(at(metadata, "annotations") as JsonObject),
      "openshift.io/requester": username,
    };
    const resource = { group: "", version: "v1", resource: "namespaces" };
    const request = {
      uid: "forged",
      kind: { group: "", version: "v1", kind: "Namespace" },
      resource,
      requestKind: { group: "", version: "v1", kind: "Namespace" },
      requestResource: resource,
      name,
      operation: "CREATE",
      userInfo: { username, groups: ["tenants", "system:authenticated"] },
      object: { ...project, metadata: { name, uid: "forged", annotations } },
      oldObject: null,
      dryRun: false,
      options: {},
    };
    const review = { apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview", request };
    const answer = pod?.process.run(() => pod.handle?.(Buffer.from(JSON.stringify(review)), "/validate"));
    const { evaluation, body } = (await answer) ?? {};
    this.#trace(`forged review of ${name}: ${body}`);
    if (evaluation !== undefined) pod?.process.run(() => pod.after?.(evaluation));
  }

  /** A project that names the request which creates it: several may ask for one name. */
  #projectOf(name: string): JsonObject {
    this.#requests += 1;
    const metadata = { name, annotations: { [REQUEST]: String(this.#requests) } };
    return { apiVersion: "v1", kind: "Namespace", metadata };
  }

  async #setLimit(max: number): Promise<void> {
    const spec = { limits: [{ groups: ["tenants"], maxProjects: max }], namespaces: {} };
    await this.put("/apis/operator.project.openshift.io/v1/projectrequestlimits", {
      apiVersion: "operator.project.openshift.io/v1",
      kind: "ProjectRequestLimit",
      metadata: { name: "cluster" },
      spec,
    });
  }

  async #churn(name: string, writes: number, what: "status" | "taint"): Promise<void> {
    const path = `/api/v1/nodes/${name}`;
    const taint = { key: "other.example.com/churn", effect: "NoSchedule" };
    for (let i = 0; i < writes; i++) {
      await this.runtime.pause(1 + 6 * this.#random());
      const node = this.store.get("nodes", name);
      if (node === undefined) return;
      if (i % 20 === 0) await this.#renewNodeLease(name);
      if (what === "status") {
        const beat = { status: { conditions: [{ type: "Ready", status: "True", message: String(i) }] } };
        await this.send(ADMIN, "PATCH", `${path}/status`, beat, "application/merge-patch+json");
        continue;
      }
      const others = listAt(node, "spec", "taints").filter((one) => stringAt(one, "key") !== taint.key);
      const resourceVersion = stringAt(node, "metadata", "resourceVersion") ?? "";
      const taints = i % 2 === 0 && i < writes - 2 ? [...others, taint] : others;
      const body = { metadata: { resourceVersion }, spec: { taints } };
      await this.send(ADMIN, "PATCH", path, body, "application/merge-patch+json");
    }
  }

  async #renewNodeLease(name: string): Promise<void> {
    const node = { username: `system:node:${name}`, groups: ["system:nodes", "system:authenticated"] };
    const path = `/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/${name}`;
    const live = this.store.get("leases.coordination.k8s.io", `kube-node-lease/${name}`);
    const resourceVersion = stringAt(live, "metadata", "resourceVersion");
    await this.send(node, "PUT", path, {
      apiVersion: "coordination.k8s.io/v1",
      kind: "Lease",
      metadata: { name, namespace: "kube-node-lease", ...(resourceVersion && { resourceVersion }) },
      spec: { holderIdentity: name, leaseDurationSeconds: 40 },
    });
  }

  /** Creates the object, or replaces its spec. */
  async put(collection: string, object: JsonObject): Promise<void> {
    const created = await this.send(ADMIN, "POST", collection, object);
    if (created.status !== 409) return;
    const name = stringAt(object, "metadata", "name") ?? "";
    const stored = await this.send(ADMIN, "GET", `${collection}/${name}`);
    if (!isObject(stored.body)) return;
    await this.send(ADMIN, "PUT", `${collection}/${name}`, { ...stored.body, spec: object["spec"] ?? {} });
  }

  async #editWebhooks(kind: "mutating" | "validating", how: "open" | "empty" | "delete"): Promise<void> {
    const path = `/apis/admissionregistration.k8s.io/v1/${kind}webhookconfigurations/${OWN_NAMES.webhooks}`;
    if (how === "delete") {
      await this.send(ADMIN, "DELETE", path);
      return;
    }
    const live = this.store.get(
      `${kind}webhookconfigurations.admissionregistration.k8s.io`,
      OWN_NAMES.webhooks,
    );
    if (live === undefined) return;
    const webhooks =
      how === "empty"
        ? []
        : listAt(live, "webhooks").map((entry) => ({ ...(entry as JsonObject), failurePolicy: "Ignore" }));
    await this.send(ADMIN, "PUT", path, { ...live, webhooks });
  }

  // ——— faults ———

  #break(fault: Fault): void {
    this.#trace(`fault ${describe(fault)}`);
    const name = this.#slots.get(fault.process) ?? fault.process;
    const link = this.network.link(name);
    const process = name === WATCHDOG ? this.watchdog : this.pods.get(name)?.process;
    const condition = "forMs" in fault ? conditionOf(fault) : undefined;
    if (condition !== undefined && "forMs" in fault) {
      Object.assign(link, condition);
      if (fault.fault === "cut") this.network.reset(name);
      const good = Object.fromEntries(
        Object.keys(condition).map((key) => [key, GOOD_LINK[key as keyof Link]]),
      );
      this.runtime.schedule(fault.forMs, () => Object.assign(link, good));
      return;
    }
    switch (fault.fault) {
      case "crash":
        this.#crash(name, fault.forMs);
        break;
      case "crash at write":
        this.#crashesAtWrite.set(name, { left: fault.write, forMs: fault.forMs });
        break;
      case "freeze":
        if (process !== undefined) this.#freeze(process, fault.forMs, fault.timersFirst);
        break;
      case "half-open":
        this.network.forget(name);
        break;
      case "reset":
        this.network.reset(name);
        break;
      case "switch":
        link.server = 1 - link.server;
        this.network.reset(name);
        break;
      case "jump":
        this.#jumped.set(slotOf(name), (this.#jumped.get(slotOf(name)) ?? 0) + fault.byMs);
        if (process !== undefined) process.wallOffset += fault.byMs;
        break;
      case "compact":
        this.store.compact();
        for (const server of this.servers) server.restart();
        break;
      case "slow writes":
        this.#slowMs = fault.delayMs;
        this.runtime.schedule(fault.forMs, () => {
          this.#slowMs = 0;
        });
        break;
      case "lag":
        this.#lagMs = fault.lagMs;
        this.runtime.schedule(fault.forMs, () => {
          this.#lagMs = 0;
        });
    }
  }

  /** Ends all faults. */
  #repair(): void {
    this.#trace("everything is repaired");
    this.#lagMs = 0;
    this.#slowMs = 0;
    this.missedCrashes = [...this.#crashesAtWrite.keys()];
    this.#crashesAtWrite.clear();
    for (const name of [...this.pods.keys(), WATCHDOG]) {
      const link = this.network.link(name);
      Object.assign(link, { ...GOOD_LINK, server: link.server });
      const process = name === WATCHDOG ? this.watchdog : this.pods.get(name)?.process;
      if (process?.frozen) process.thaw(false);
      if (process?.alive === false) this.#restart(name);
    }
  }
}

/** A node as its kubelet registers it. */
export function joiningNode(name: string): JsonObject {
  return {
    apiVersion: "v1",
    kind: "Node",
    metadata: {
      name,
      labels: {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "other.example.com/rack": "r1",
        ...(name.startsWith("core") ? { [PROTECTED]: "" } : {}),
      },
    },
    spec: {
      podCIDR: "10.1.0.0/24",
      taints: [
        ...(name.startsWith("edge") ? [{ key: "usher.dev/starting", effect: "NoSchedule" }] : []),
        { key: "other.example.com/slow", value: "yes", effect: "PreferNoSchedule" },
      ],
    },
  };
}

const REQUEST = `${DOMAIN}/request`;

/** The request that creates, or has created, a project. */
export function requestOf(project: Json | undefined): string {
  return stringAt(project, "metadata", "annotations", REQUEST) ?? "";
}

/** The replica of the start that a pod replaces. */
function slotOf(pod: string): string {
  return pod.replace(/-\d+$/, "");
}

/** Caught by usher, and still a mistake. */
const PROGRAMMING_ERROR =
  /is not (defined|a function|iterable)|Cannot (read|access|destructure)|Maximum call stack|internal error/;

/** The hooks that a path names: `/TOKEN/validate/HOOK/HOOK`. */
function hooksIn(path: string): string[] {
  return path.split(/\/(?:mutate|validate)\//)[1]?.split("/") ?? [];
}

/** Nodes join and send heartbeats whatever becomes of usher. */
function isVital(method: string, path: string): boolean {
  return (
    (method === "POST" && path === "/api/v1/nodes") ||
    /\/nodes\/[^/]+\/status$|\/kube-node-lease\/leases\//.test(path)
  );
}

/** The condition of connections during a fault; `undefined` for a fault of another sort. */
function conditionOf(fault: Fault): Partial<Link> | undefined {
  switch (fault.fault) {
    case "delay":
      return { delayMs: fault.delayMs };
    case "cut":
      return { cut: true };
    case "silence":
      return { silent: true };
    case "stall":
      return { stalled: fault.resource ?? true };
    case "lose answers":
      return { losesAnswers: true };
    case "busy":
      return { busy: fault.resource ?? true };
    case "read-only":
      return { readOnly: true };
    case "unsure":
      return { unsure: true };
    default:
      return undefined;
  }
}
