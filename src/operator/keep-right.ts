import type { Client } from "../cluster/client.ts";
import { pathSegment } from "../cluster/path-segment.ts";
import { pause } from "../cluster/patience.ts";
import type { Assembly } from "../core/assembly.ts";
import { at, type JsonObject, listAt, stringAt } from "../core/json.ts";
import { kindResource } from "../core/kind.ts";
import { compareVersions, parseVersion } from "../core/kubernetes/versions.ts";
import type { Log } from "../core/log.ts";
import { registeredKinds, registeredWebhooks } from "../core/registration/index.ts";
import { OWN_NAMES, VERSION_LABEL } from "../core/registration/names.ts";
import { SERVICE_PORT } from "../core/registration/workload.ts";
import { describeObject, Objects } from "./apply.ts";
import type { Trust } from "./certificate-plan.ts";
import { trusts } from "./certificate-record.ts";
import type { Certificates } from "./certificates.ts";
import { crdDeviations, webhookDeviations, withCloudExpressions } from "./deviation.ts";
import { describeForeignCrd, foreignCrd, isOurs } from "./foreign.ts";
import { predecessorsOf } from "./install-plan.ts";
import { brokenPolicies, resourceKinds } from "./stored-policies.ts";

export interface KeeperOptions {
  readonly client: Client;
  readonly assembly: Assembly;
  readonly certificates: Pick<Certificates, "bundle" | "nextAuthority" | "keep" | "look">;
  readonly log: Log;
  readonly version: string;
  /** Asked before every write. @default while it is started */
  readonly leading?: () => boolean;
  /** Whether this replica has read all and answers. @default yes */
  readonly ready?: () => boolean;
  /** @default usher */
  readonly service?: string;
  /** Milliseconds since 1970. */
  readonly now?: () => number;
  readonly lookEveryMs?: number;
}

/** An edit stands for so long at most. Four small reads each time: far less than a watch that must be watched itself. */
const LOOK_EVERY_MS = 3_000;

/** When policies come by the hundred, hooks follow them once for all that came in this time. */
const GATHER_MS = 200;

/** CRDs are large and hardly ever edited: every tenth time. */
const CRDS_EVERY = 10;

/**
 * What the leader keeps right while it leads: the certificate, both webhook configurations as the policies of the moment ask for
 * them, and the CRDs. Not its roles, its Deployment or its Service: those are the administrator's, and usher may not touch them.
 */
export class Keeper {
  readonly #options: KeeperOptions;
  readonly #objects: Objects;
  readonly #now: () => number;
  /** Made when they are first needed, which in most replicas is never. */
  #crds: readonly JsonObject[] | undefined;
  #stop: AbortController | undefined;
  #running: Promise<void> = Promise.resolve();
  #wake: () => void = () => undefined;
  #again = false;
  #trust: Trust = "not yet";
  /** What was said already: a thing that stays as it is, is told once. */
  readonly #told = new Set<string>();

  constructor(options: KeeperOptions) {
    this.#options = options;
    this.#objects = new Objects(options.client);
    this.#now = options.now ?? Date.now;
  }

  /** To be called when leading begins. */
  start(): void {
    if (this.#stop !== undefined) return;
    this.#stop = new AbortController();
    this.#trust = "not yet";
    this.#told.clear();
    this.#running = this.#run(this.#stop.signal);
  }

  /** To be called when leading ends; done when nothing is under way any more. */
  async stop(): Promise<void> {
    this.#stop?.abort();
    this.#stop = undefined;
    await this.#running;
  }

  /** Something changed that hooks may follow: look now. */
  changed(): void {
    this.#again = true;
    this.#wake();
  }

  async #run(signal: AbortSignal): Promise<void> {
    for (let round = 0; !signal.aborted; round++) {
      this.#again = false;
      if (round === 0) await this.#try("other hands", () => this.#report());
      await this.#try("the certificate", () => this.#options.certificates.keep(this.#trust));
      await this.#try("the webhook configurations", () => this.#keepWebhooks(signal));
      await this.#options.certificates.look();
      if (round % CRDS_EVERY === 0) await this.#try("the CRDs", () => this.#keepCrds(signal));
      await pause(GATHER_MS, signal);
      await this.#untilDue(signal);
    }
  }

  async #untilDue(signal: AbortSignal): Promise<void> {
    if (this.#again) return;
    const woken = new AbortController();
    this.#wake = () => woken.abort();
    await pause(this.#options.lookEveryMs ?? LOOK_EVERY_MS, AbortSignal.any([signal, woken.signal]));
  }

  async #try(what: string, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      this.#tellOnce(
        `${what} ${why}`,
        { what, error: why },
        "can't keep the installation right; trying again",
      );
    }
  }

  #webhooks(): readonly JsonObject[] {
    const { assembly, certificates, service = OWN_NAMES.service, version } = this.#options;
    const { namespace } = assembly.installation;
    const { objects, notes } = registeredWebhooks(assembly, {
      endpoint: { service: { name: service, namespace, port: SERVICE_PORT } },
      caBundle: Buffer.from(certificates.bundle).toString("base64"),
      version,
    });
    for (const note of notes) this.#tellOnce(note, { note }, "a hook is not registered as it was declared");
    return objects;
  }

  async #keepWebhooks(signal: AbortSignal): Promise<void> {
    // Hooks follow from all policies, so not before all are read.
    if (this.#options.ready?.() === false) return;
    const stored: (JsonObject | undefined)[] = [];
    for (const plain of this.#webhooks()) {
      const live = await this.#objects.read(plain);
      const wanted = withCloudExpressions(plain, live);
      stored.push(live);
      if (live === undefined) {
        if (!(await this.#answers()) || !this.#may(signal)) continue;
        await this.#objects.apply(wanted);
        this.#options.log.info({ object: describeObject(wanted) }, "webhook registered");
        continue;
      }
      const deviations = webhookDeviations(wanted, live);
      if (deviations.length === 0 || !this.#may(signal)) continue;
      const applied = await this.#objects.apply(wanted, live);
      // What somebody put in beside our fields is his by the rules of apply; in here it can switch usher off.
      if (webhookDeviations(wanted, applied).length > 0)
        await this.#objects.replace(wanted, "webhooks", applied);
      this.#options.log.info(
        { object: describeObject(wanted), deviations },
        "webhook configuration set right",
      );
    }
    this.#trust = this.#trustFrom(stored);
  }

  /** From the moment at which every published bundle had it, before our own eyes. */
  #trustFrom(stored: readonly (JsonObject | undefined)[]): Trust {
    const { nextAuthority } = this.#options.certificates;
    const entries = stored.flatMap((one) => listAt(one, "webhooks"));
    if (entries.length === 0) return "nobody calls";
    if (nextAuthority === undefined) return "not yet";
    const all = entries.every((entry) => trusts(stringAt(entry, "clientConfig", "caBundle"), nextAuthority));
    if (!all) return "not yet";
    return typeof this.#trust === "object" ? this.#trust : { since: this.#now() };
  }

  async #keepCrds(signal: AbortSignal): Promise<void> {
    const { assembly, version } = this.#options;
    this.#crds ??= registeredKinds(assembly.modules, version);
    for (const wanted of this.#crds) {
      const live = await this.#objects.read(wanted);
      if (live !== undefined && !isOurs(live)) {
        const report = describeForeignCrd(foreignCrd(wanted, live));
        this.#tellOnce(
          report.join(),
          { report },
          "a CRD is someone else's and is left; usher install --take-over makes it usher's",
        );
        continue;
      }
      if (live !== undefined && isNewer(live, version)) continue;
      const deviations = live === undefined ? ["missing"] : crdDeviations(wanted, live);
      if (deviations.length === 0 || !this.#may(signal)) continue;
      await this.#objects.apply(wanted, live);
      this.#options.log.info({ object: describeObject(wanted), deviations }, "CRD set right");
    }
  }

  #may(signal: AbortSignal): boolean {
    return !signal.aborted && (this.#options.leading?.() ?? true);
  }

  /** Whether a call to the Service would be answered: nothing is registered before that. */
  async #answers(): Promise<boolean> {
    const { assembly, client, service = OWN_NAMES.service } = this.#options;
    const namespace = pathSegment("namespace", assembly.installation.namespace);
    const path = `/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices`;
    const selector = encodeURIComponent(`kubernetes.io/service-name=${service}`);
    const answer = await client.request("GET", `${path}?labelSelector=${selector}`);
    if (answer.status !== 200)
      throw new Error(`whether ${service} answers: ${answer.status} ${answer.text.slice(0, 200)}`);
    return listAt(answer.body, "items").some((slice) =>
      listAt(slice, "endpoints").some((endpoint) => at(endpoint, "conditions", "ready") === true),
    );
  }

  /** Said once, when leading begins: what others have left here. */
  async #report(): Promise<void> {
    const { assembly, log } = this.#options;
    for (const finding of await predecessorsOf(this.#objects, assembly.modules))
      log.warn({ finding }, "another system does the same work here");
    for (const kind of resourceKinds(assembly.modules)) {
      const objects = assembly.view.list(kindResource(kind));
      for (const broken of brokenPolicies(kind, objects, assembly.view))
        log.warn(broken, "a stored policy breaks usher's rules; what is wrong in it has no effect");
    }
  }

  #tellOnce(key: string, facts: object, message: string): void {
    if (this.#told.has(key)) return;
    this.#told.add(key);
    this.#options.log.warn(facts, message);
  }
}

/** While versions change over, an older leader must not take the fields of a newer CRD away. */
function isNewer(live: JsonObject, version: string): boolean {
  const theirs = parseVersion(stringAt(live, "metadata", "labels", VERSION_LABEL) ?? "");
  const ours = parseVersion(version);
  return theirs !== undefined && ours !== undefined && compareVersions(theirs, ours) > 0;
}
