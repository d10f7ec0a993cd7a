import type { Client } from "../../cluster/client/client.ts";
import { EventRecorder } from "../../cluster/events/event-recorder.ts";
import { createFindLive } from "../../cluster/events/live-objects.ts";
import { ObservationWriter } from "../../cluster/observations/observation-writer.ts";
import { Tallies } from "../../cluster/policy-statistics/tallies.ts";
import { TallyCollector } from "../../cluster/policy-statistics/tally-collector.ts";
import { TallyPublisher } from "../../cluster/policy-statistics/tally-publisher.ts";
import type { ClusterSource } from "../../cluster/source/cluster-source.ts";
import type { Count } from "../../core/decision/decision.ts";
import type { Effects } from "../../core/evaluate/effects.ts";
import type { JsonObject } from "../../core/json.ts";
import { ownerReference } from "../../core/kubernetes/object.ts";
import type { Log } from "../../core/log.ts";
import type { ControllerStats } from "../../core/module/reconciler.ts";
import { anchor, hasStandby } from "../../core/registration/managed-objects.ts";
import { OWN_NAMES } from "../../core/registration/names.ts";
import type { WebhookCertificates } from "../certificates/webhook-certificates.ts";
import { Objects } from "../install/apply.ts";
import { HookAnnouncement, untilSupported } from "../webhooks/hook-announcement.ts";
import { endStandby } from "../webhooks/standby.ts";
import { InstallationController } from "./installation-controller.ts";
import { Leader } from "./leader.ts";

interface ReplicaOptions {
  readonly client: Client;
  readonly source: ClusterSource;
  /**
   * The certificate that the leader renews. Absent if usher does not manage certificates: then it does not manage
   * webhooks either.
   */
  readonly certificates: WebhookCertificates | undefined;
  readonly log: Log;
  readonly version: string;
  /** Unique among the replicas: the pod's name. */
  readonly identity: string;
  /** Whether only clients with a verified certificate may call. @default no */
  readonly callersVerified?: boolean;
  /** The pod, as an ownerReference: objects of this replica are deleted with it. */
  readonly owner?: JsonObject;
  /** Usher's Deployment, as an ownerReference: objects shared by all replicas are deleted with it. */
  readonly deployment?: JsonObject | undefined;
}

/**
 * The work of one replica beside admission: it records events, publishes its tallies, writes observations, and takes
 * part in leader election. The leader runs the controllers.
 */
export class Replica {
  readonly #options: ReplicaOptions;
  readonly #tallies = new Tallies();
  readonly #events: EventRecorder;
  readonly #observations: ObservationWriter;
  #count: ((counts: readonly Count[]) => void) | undefined;
  readonly #publisher: TallyPublisher;
  readonly #collector: TallyCollector;
  readonly #leader: Leader;
  readonly #installation: InstallationController | undefined;
  readonly #hooks: HookAnnouncement;
  #started = false;

  constructor(options: ReplicaOptions) {
    this.#options = options;
    const { client, source, certificates, log, version, identity, owner, deployment } = options;
    const { assembly } = source;
    const { namespace } = assembly.installation;
    const apiVersions = new Map(
      assembly.modules.flatMap(({ kinds }) =>
        kinds.map((kind) => [
          kind.kind,
          `${kind.group}/${kind.versions.find(({ storage }) => storage)?.name}`,
        ]),
      ),
    );
    this.#events = new EventRecorder({
      client,
      instance: identity,
      apiVersionOf: (kind) => apiVersions.get(kind),
      findLive: createFindLive(client, assembly.installation.workloads),
    });
    this.#observations = new ObservationWriter({ client, namespace, log, owner: deployment });
    const objects = new Objects(client);
    const installationOwner = async () => {
      const live = await objects.read(anchor()).catch(() => undefined);
      return live === undefined
        ? undefined
        : ownerReference({ ...live, ...anchor(), metadata: live["metadata"] ?? {} });
    };
    const counting = {
      client,
      namespace,
      // A container that restarts in its pod counts from zero: its earlier counts must stay.
      replica: `${identity}-${Date.now().toString(36)}`,
      tallies: this.#tallies,
      owner: installationOwner,
      log,
    };
    this.#publisher = new TallyPublisher(counting);
    this.#collector = new TallyCollector({
      ...counting,
      counted: (policies) => this.#leader.controller.talliesChanged(policies),
    });
    this.#leader = new Leader({
      client,
      source,
      lease: OWN_NAMES.lease,
      identity,
      owner: deployment,
      log,
      tallies: this.#collector,
      publish: (events, counts) => {
        this.#events.add(events);
        this.#count?.(counts);
      },
      beside: {
        start: () => {
          this.#installation?.start();
          this.#collector.start();
        },
        stop: () => {
          this.#collector.stop();
          return this.#installation?.stop();
        },
      },
    });
    this.#installation =
      certificates === undefined
        ? undefined
        : new InstallationController({
            client,
            assembly,
            certificates,
            log,
            version,
            leading: () => this.#leader.leading,
            ready: () => source.ready,
            publish: (events) => this.#events.add(events),
            replica: identity,
            installed: owner !== undefined,
          });
    this.#hooks = new HookAnnouncement({
      client,
      namespace,
      replica: identity,
      owner,
      hooks: () => assembly.declaredHooks,
      log,
    });
    source.onChange(() => {
      this.#installation?.changed();
      if (this.#started) void this.#hooks.publish();
    });
  }

  /** To be called before it serves: announces the hooks that it answers, waits until no other is registered, and ends the standby. */
  async join(signal: AbortSignal): Promise<void> {
    const { client, source, log } = this.#options;
    await this.#hooks.publish();
    await untilSupported(client, () => source.assembly.hooks, log, signal);
    if (hasStandby(source.assembly)) await endStandby(client, log, signal);
  }

  /** A call to this replica failed. */
  readonly callFailed = (): void => this.#hooks.callFailed();

  /** After each answer. */
  readonly effects = ({ events, tallies, observed }: Effects): void => {
    const now = Date.now();
    const { callersVerified = false } = this.#options;
    this.#events.add(callersVerified ? events : events.map((event) => ({ ...event, unverified: true })));
    this.#tallies.add(tallies, now);
    this.#observations.add(observed, now);
  };

  readonly controllerStats = (): ControllerStats => ({
    ...this.#leader.controller.stats,
    leading: this.#leader.leading,
    droppedEvents: this.#events.dropped,
    ...(this.#installation === undefined ? {} : { drift: this.#installation.drift }),
  });

  /** `count` receives the counts of reconcilers. */
  start(count?: (counts: readonly Count[]) => void): void {
    this.#count = count;
    this.#started = true;
    this.#publisher.start();
    this.#observations.start();
    this.#leader.start();
  }

  async stop(): Promise<void> {
    await this.#leader.stop();
    await Promise.all([
      this.#events.stop(),
      this.#publisher.stop(),
      this.#observations.stop(),
      this.#hooks.stop(),
    ]);
  }
}
