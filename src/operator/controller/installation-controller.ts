import type { Client } from "../../cluster/client/client.ts";
import { pause } from "../../cluster/client/retry.ts";
import type { EventToWrite } from "../../core/decision/finding.ts";
import type { JsonObject } from "../../core/json.ts";
import { nameOf } from "../../core/kubernetes/object.ts";
import type { Log } from "../../core/log.ts";
import type { Assembly } from "../../core/module/assembly.ts";
import { kindResource } from "../../core/policy/kind.ts";
import { excludedFromTakeOver } from "../../core/registration/crd.ts";
import { registeredKinds } from "../../core/registration/index.ts";
import { OWN_NAMES } from "../../core/registration/names.ts";
import type { WebhookCertificates } from "../certificates/webhook-certificates.ts";
import { DeduplicatedLog } from "../deduplicated-log.ts";
import { describeObject, Objects } from "../install/apply.ts";
import { predecessorsOf } from "../install/install-plan.ts";
import {
  conflictingCrd,
  describeConflictingCrd,
  isNewer,
  isOurs,
  keeperOf,
} from "../install/ownership-conflict.ts";
import { brokenPolicies, resourceKinds } from "../install/stored-policies.ts";
import { Anchor } from "../webhooks/anchor.ts";
import { objectDeviations } from "../webhooks/deviation.ts";
import { Drift, type DriftFigures } from "./drift.ts";
import { ManagedObjectsController } from "./managed-objects-controller.ts";
import { Repairs } from "./repairs.ts";
import { WebhookController } from "./webhook-controller.ts";

export interface InstallationControllerOptions {
  readonly client: Client;
  readonly assembly: Assembly;
  readonly certificates: WebhookCertificates;
  readonly log: Log;
  readonly version: string;
  /** Checked before every write. @default while it is started */
  readonly leading?: () => boolean;
  /** Whether this replica has synced and serves. @default yes */
  readonly ready?: () => boolean;
  /** @default usher */
  readonly service?: string;
  /** Milliseconds, monotonic: the time of a CA's trust must not depend on the wall clock. */
  readonly clock?: () => number;
  readonly resyncMs?: number;
  /** The name of this replica's pod. */
  readonly replica?: string;
  /** Whether this replica runs in the installed Deployment, with the configuration of its ConfigMap. @default no */
  readonly installed?: boolean;
  /** @default events are not published */
  readonly publish?: (events: readonly EventToWrite[]) => void;
}

/** An edit lasts for this time at most. Six small reads each time: far less than a watch that must itself be supervised. */
const RESYNC_MS = 3_000;

/** When hundreds of policies change, webhooks are updated once for all changes of this time. */
const BATCH_MS = 200;

/** CRDs are large and rarely edited, and so is the configuration: every tenth resync reads them. */
const CRDS_EVERY = 10;

/**
 * Reconciles the installation while this replica leads: the anchor's owner, the certificate, both webhook
 * configurations for the current policies, the objects that modules manage, and the CRDs. Not its roles, its Deployment
 * or its Service: those belong to the administrator, and usher may not write them.
 */
export class InstallationController {
  readonly #options: InstallationControllerOptions;
  readonly #objects: Objects;
  readonly #deduplicated: DeduplicatedLog;
  readonly #repairs: Repairs;
  readonly #drift: Drift;
  readonly #anchor: Anchor;
  readonly #webhooks: WebhookController;
  readonly #managed: ManagedObjectsController;
  /** Created at first use, which in most replicas is never. */
  #crds: readonly JsonObject[] | undefined;
  #stop: AbortController | undefined;
  #running: Promise<void> = Promise.resolve();
  #wake: () => void = () => undefined;
  #again = false;

  constructor(options: InstallationControllerOptions) {
    this.#options = options;
    this.#objects = new Objects(options.client);
    const clock = options.clock ?? (() => performance.now());
    this.#deduplicated = new DeduplicatedLog(options.log, clock);
    this.#repairs = new Repairs(this.#objects, this.#deduplicated);
    this.#drift = new Drift(this.#deduplicated);
    const parts = {
      objects: this.#objects,
      repairs: this.#repairs,
      deduplicated: this.#deduplicated,
      drift: this.#drift,
      ownership: () => this.#anchor.ownership,
    };
    const { namespace } = options.assembly.installation;
    this.#anchor = new Anchor({ ...options, ...parts, namespace });
    this.#webhooks = new WebhookController({ ...options, ...parts, clock });
    this.#managed = new ManagedObjectsController({ ...options, ...parts });
  }

  /** To be called on started leading. */
  start(): void {
    if (this.#stop !== undefined) return;
    this.#stop = new AbortController();
    this.#anchor.clear();
    this.#webhooks.clear();
    this.#managed.clear();
    this.#repairs.clear();
    this.#drift.clear();
    this.#deduplicated.clear();
    this.#running = this.#run(this.#stop.signal);
  }

  /** To be called on stopped leading; resolves when nothing is in flight. */
  async stop(): Promise<void> {
    this.#stop?.abort();
    this.#stop = undefined;
    await this.#running;
  }

  /** Differences from the objects that usher would write, if it has no permission to write them. */
  get drift(): DriftFigures {
    return this.#drift.figures;
  }

  /** The view changed, and webhooks may depend on it: reconcile now. */
  changed(): void {
    this.#again = true;
    this.#wake();
  }

  async #run(signal: AbortSignal): Promise<void> {
    const { certificates, resyncMs = RESYNC_MS } = this.#options;
    const batchMs = Math.min(BATCH_MS, resyncMs);
    let resyncDue = performance.now();
    let crdsDue = resyncDue;
    const may = () => this.#may(signal);
    await this.#try("predecessors", () => this.#report());
    while (!signal.aborted) {
      this.#again = false;
      const now = performance.now();
      if (now < resyncDue) {
        await this.#try("webhook configurations", () => this.#webhooks.follow(may));
        await this.#try("managed objects", () => this.#managed.follow(may));
      } else {
        await this.#try("anchor", () => this.#anchor.reconcile(may));
        await this.#try("certificate", () => certificates.reconcile(this.#webhooks.trust));
        await this.#try("webhook configurations", () => this.#webhooks.reconcile(may));
        await this.#try("managed objects", () => this.#managed.reconcile(may));
        await certificates.refresh();
        if (now >= crdsDue && this.#anchor.ownership !== undefined) {
          await this.#try("CRDs", () => this.#reconcileCrds(may));
          if (this.#options.installed === true)
            await this.#try("configuration", () => this.#checkConfiguration());
          crdsDue = now + CRDS_EVERY * resyncMs;
        }
        resyncDue = performance.now() + batchMs + resyncMs;
      }
      await pause(batchMs, signal);
      await this.#untilDue(resyncDue, signal);
    }
  }

  async #untilDue(due: number, signal: AbortSignal): Promise<void> {
    if (this.#again) return;
    const woken = new AbortController();
    this.#wake = () => woken.abort();
    // A timer may fire a fraction of a millisecond early, which would be one batch too late.
    await pause(Math.max(0, due - performance.now()) + 1, AbortSignal.any([signal, woken.signal]));
  }

  async #try(what: string, work: () => Promise<void>): Promise<void> {
    try {
      await work();
      this.#deduplicated.succeeded(what);
    } catch (error) {
      this.#deduplicated.failed(what, error, "failed to reconcile the installation, retrying");
    }
  }

  async #reconcileCrds(may: () => boolean): Promise<void> {
    const { assembly, version } = this.#options;
    this.#crds ??= registeredKinds(assembly, version);
    for (const wanted of this.#crds) {
      const live = await this.#objects.read(wanted);
      if (live !== undefined && !isOurs(live)) {
        const never = keeperOf(live) !== undefined || excludedFromTakeOver(assembly.modules, nameOf(wanted));
        this.#deduplicated.conflict("CRD", describeConflictingCrd(conflictingCrd(wanted, live)), never);
        continue;
      }
      // During an upgrade, an older leader must not remove the fields of a newer CRD.
      if (live !== undefined && isNewer(live, version)) continue;
      const deviations = live === undefined ? ["missing"] : objectDeviations(wanted, live);
      if (deviations.length === 0 || this.#repairs.isInVain(wanted, live) || !may()) continue;
      await this.#repairs.write(wanted, live, objectDeviations);
      this.#options.log.info({ object: describeObject(wanted), deviations }, "CRD repaired");
    }
  }

  /**
   * Running replicas keep a configuration that was deleted, and new ones wait for it. It is reported and not restored:
   * Helm and GitOps tools would not recognize an object that usher wrote.
   */
  async #checkConfiguration(): Promise<void> {
    const { namespace } = this.#options.assembly.installation;
    const metadata = { name: OWN_NAMES.configuration, namespace };
    const object = { apiVersion: "v1", kind: "ConfigMap", metadata };
    const live = await this.#objects.read(object);
    this.#drift.reportAll("configuration", [{ object, deviations: live === undefined ? ["missing"] : [] }]);
  }

  #may(signal: AbortSignal): boolean {
    return !signal.aborted && (this.#options.leading?.() ?? true);
  }

  /** Logged once, when leading starts: predecessors, and stored policies that are not valid. */
  async #report(): Promise<void> {
    const { assembly, log } = this.#options;
    for (const finding of await predecessorsOf(this.#objects, assembly.modules))
      log.warn({ finding }, "another system does the work of a module");
    for (const kind of resourceKinds(assembly.modules)) {
      const objects = assembly.view.list(kindResource(kind));
      for (const broken of brokenPolicies(kind, objects, assembly.view))
        log.warn(broken, "stored policy is not valid, its invalid parts have no effect");
    }
  }
}
