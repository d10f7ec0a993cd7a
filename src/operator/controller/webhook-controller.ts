import type { Client } from "../../cluster/client/client.ts";
import type { EventToWrite } from "../../core/decision/finding.ts";
import { managesWebhooks } from "../../core/installation/installation.ts";
import { at, equal, type Json, type JsonObject, listAt, stringAt } from "../../core/json.ts";
import type { Log } from "../../core/log.ts";
import type { Assembly } from "../../core/module/assembly.ts";
import { registeredWebhooks } from "../../core/registration/index.ts";
import { hasStandby } from "../../core/registration/managed-objects.ts";
import { OWN_NAMES } from "../../core/registration/names.ts";
import { SERVICE_PORT } from "../../core/registration/workload.ts";
import type { Trust } from "../certificates/certificate-plan.ts";
import { trusts } from "../certificates/certificate-record.ts";
import type { WebhookCertificates } from "../certificates/webhook-certificates.ts";
import type { DeduplicatedLog } from "../deduplicated-log.ts";
import { describeObject, type Objects } from "../install/apply.ts";
import { describeConflictingWebhooks, isWrittenByUsher } from "../install/ownership-conflict.ts";
import { type AnchorOwnership, ownedBy } from "../webhooks/anchor.ts";
import {
  entryDeviations,
  webhookDeviations,
  withCloudExpressions,
  withInjectedBundle,
  withPublishedBundle,
  withStoredEntries,
} from "../webhooks/deviation.ts";
import { closedEvent, FORGET_OPENED, openedNote } from "../webhooks/opened.ts";
import { SupportedHooks } from "../webhooks/supported-hooks.ts";
import type { Drift } from "./drift.ts";
import type { Repairs } from "./repairs.ts";

export interface WebhookControllerOptions {
  readonly client: Client;
  readonly assembly: Assembly;
  readonly certificates: Omit<WebhookCertificates, "reconcile" | "refresh">;
  readonly log: Log;
  readonly version: string;
  readonly ready?: () => boolean;
  readonly service?: string;
  readonly clock: () => number;
  readonly objects: Objects;
  readonly repairs: Repairs;
  readonly deduplicated: DeduplicatedLog;
  readonly drift: Drift;
  /** The owner of the webhooks; without one, none is written. */
  readonly ownership: () => AnchorOwnership | undefined;
  /** The name of this replica's pod. */
  readonly replica?: string;
  readonly publish?: (events: readonly EventToWrite[]) => void;
}

/** Since when API servers trust the CA of the next pair, by the monotonic clock. */
type TrustSeen = Exclude<Trust, object> | { readonly since: number };

/** Reconciles both webhook configurations with the current policies and the certificate in use. */
export class WebhookController {
  readonly #options: WebhookControllerOptions;
  readonly #supported: SupportedHooks;
  #trust: TrustSeen = "not yet";
  /** Calls may have failed and exposed the paths. */
  #callsFailed = false;
  /** API servers have known a path. If entries are removed, they are written again with the same one. */
  #hadEntries = false;
  /** The desired webhooks when the stored ones were last equal or made equal. */
  #reconciled: readonly JsonObject[] | undefined;

  constructor(options: WebhookControllerOptions) {
    this.#options = options;
    const { client, assembly, service = OWN_NAMES.service, replica } = options;
    this.#supported = new SupportedHooks({
      client,
      namespace: assembly.installation.namespace,
      service,
      replica,
      deduplicated: options.deduplicated,
    });
  }

  clear(): void {
    this.#trust = "not yet";
    this.#reconciled = undefined;
  }

  #desired(ownership: AnchorOwnership | undefined): readonly JsonObject[] {
    const { assembly, certificates, service = OWN_NAMES.service, version } = this.#options;
    const { namespace } = assembly.installation;
    const { bundle, pathToken, annotations } = certificates;
    const declaredHooks = assembly.declaredHooks.filter((hook) => this.#supported.has(hook));
    const { objects, notes } = registeredWebhooks(
      { declaredHooks, installation: assembly.installation },
      {
        endpoint: { service: { name: service, namespace, port: SERVICE_PORT } },
        ...(bundle === undefined ? {} : { caBundle: Buffer.from(bundle).toString("base64") }),
        ...(pathToken === undefined ? {} : { pathToken }),
        ...(annotations === undefined ? {} : { annotations }),
        standby: hasStandby(assembly),
        version,
      },
    );
    for (const note of notes)
      this.#options.deduplicated.once(note, { note }, "hook is not registered as declared");
    return ownership === undefined ? objects : ownedBy(ownership, objects);
  }

  /** Most changes of the view do not change the webhooks: then the API server is not called. */
  async follow(may: () => boolean): Promise<void> {
    const ownership = this.#options.ownership();
    if (ownership === undefined || !this.#manages) return;
    const same =
      this.#reconciled !== undefined && equal([...this.#desired(ownership)], [...this.#reconciled]);
    if (!same) await this.reconcile(may);
  }

  get #manages(): boolean {
    return managesWebhooks(this.#options.assembly.installation);
  }

  async reconcile(may: () => boolean): Promise<void> {
    // Hooks depend on all policies, so not before the view has synced.
    if (this.#options.ready?.() === false) return;
    if (!this.#manages) {
      await this.#compare();
      return;
    }
    const ownership = this.#options.ownership();
    if (ownership === undefined) return;
    this.#callsFailed = (await this.#supported.refresh()) || this.#callsFailed;
    const webhooks = this.#desired(ownership);
    const stored: (JsonObject | undefined)[] = [];
    const failures: unknown[] = [];
    this.#reconciled = undefined;
    let done = true;
    for (const plain of webhooks) {
      // A failure with one must not block the other.
      try {
        const live = await this.#options.objects.read(plain);
        if (live !== undefined && !isWrittenByUsher(live)) {
          this.#options.deduplicated.conflict(
            "webhook configuration",
            describeConflictingWebhooks(plain, live),
          );
          continue;
        }
        stored.push(live);
        const kept =
          live === undefined
            ? ownership.creates && (await this.#register(plain, may))
            : await this.#repair(plain, live, may);
        done &&= kept;
      } catch (error) {
        failures.push(error);
      }
    }
    this.#hadEntries ||= stored.some((one) => listAt(one, "webhooks").length > 0);
    if (this.#callsFailed && this.#hadEntries) this.#options.certificates.pathsShown();
    this.#callsFailed &&= failures.length > 0;
    if (failures.length > 0) throw failures[0];
    this.#trust = this.#trustFrom(stored);
    if (done) this.#reconciled = webhooks;
  }

  /** Another tool writes them: differences are only reported. */
  async #compare(): Promise<void> {
    const { objects, drift } = this.#options;
    const found = [];
    for (const object of this.#desired(undefined)) {
      const live = await objects.read(object);
      const deviations = live === undefined ? ["missing"] : entryDeviations(object, live);
      found.push({ object, live, deviations });
    }
    drift.reportAll("webhooks", found);
    this.#trust = this.#trustFrom(found.map(({ live }) => live));
  }

  /** Whether it is registered now. */
  async #register(plain: JsonObject, may: () => boolean): Promise<boolean> {
    const { certificates, repairs, log } = this.#options;
    const { bundle, injected, announced = true } = certificates;
    if ((bundle === undefined && injected === undefined) || !this.#supported.isReady || !may()) return false;
    // Without entries it causes no calls, and gives every replica the path token of future entries.
    const wanted = announced ? this.#trusting(plain, undefined) : { ...plain, webhooks: [] };
    await repairs.write(wanted, undefined, webhookDeviations);
    log.info({ object: describeObject(plain) }, "webhook configuration created");
    return announced && injected === undefined;
  }

  /** With the desired bundle. */
  #trusting(plain: JsonObject, live: JsonObject | undefined): JsonObject {
    const { bundle, injected, ownAuthority } = this.#options.certificates;
    if (injected !== undefined) return withInjectedBundle(plain, live, injected);
    return bundle === undefined && live !== undefined
      ? withPublishedBundle(plain, live, ownAuthority)
      : plain;
  }

  /** Whether it is as desired now, or can't be. */
  async #repair(plain: JsonObject, live: JsonObject, may: () => boolean): Promise<boolean> {
    const { certificates } = this.#options;
    if (!this.#supported.isReady) {
      await this.#write(this.#trusting(withStoredEntries(plain, live), live), live, may);
      return false;
    }
    const waits = listAt(live, "webhooks").length === 0 && certificates.announced === false;
    const trusting = waits ? { ...plain, webhooks: [] } : this.#trusting(plain, live);
    const wanted = withCloudExpressions(trusting, live);
    if (!(await this.#write(wanted, live, may))) return false;
    // An entry that is to be fail-closed stays fail-open until the injector has run.
    if (waits || !equal(failurePolicies(wanted), failurePolicies(plain))) return false;
    const opened = openedNote(live);
    if (opened === undefined) return true;
    // The annotation is removed last: if this attempt is interrupted, by a conflict or by another leader, the next one
    // finds it and reports the event.
    const { objects, client, log, assembly } = this.#options;
    const closed = await objects.read(plain);
    if (closed === undefined || !may() || !(await objects.patch(closed, FORGET_OPENED))) return false;
    const where = { client, log, namespace: assembly.installation.namespace };
    this.#options.publish?.([await closedEvent(where, describeObject(plain), opened)]);
    return true;
  }

  /** False if it must not write. */
  async #write(wanted: JsonObject, live: JsonObject, may: () => boolean): Promise<boolean> {
    const { repairs, log } = this.#options;
    const deviations = webhookDeviations(wanted, live);
    if (deviations.length === 0 || repairs.isInVain(wanted, live)) return true;
    if (!may()) return false;
    await repairs.write(wanted, live, webhookDeviations);
    log.info({ object: describeObject(wanted), deviations }, "webhook configuration repaired");
    return true;
  }

  /** From the moment at which every published bundle was seen to have it. */
  #trustFrom(stored: readonly (JsonObject | undefined)[]): TrustSeen {
    const { nextAuthority } = this.#options.certificates;
    const entries = stored.flatMap((one) => listAt(one, "webhooks"));
    if (entries.length === 0) return "no webhooks";
    if (nextAuthority === undefined) return "not yet";
    const all = entries.every((entry) => trusts(stringAt(entry, "clientConfig", "caBundle"), nextAuthority));
    if (!all) return "not yet";
    return typeof this.#trust === "object" ? this.#trust : { since: this.#options.clock() };
  }

  /** Whether API servers trust the next pair's CA. */
  get trust(): Trust {
    return typeof this.#trust === "object"
      ? { forMs: this.#options.clock() - this.#trust.since }
      : this.#trust;
  }
}

function failurePolicies(object: JsonObject): Json[] {
  return listAt(object, "webhooks").map((entry) => at(entry, "failurePolicy") ?? null);
}
