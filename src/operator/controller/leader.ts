import type { Client } from "../../cluster/client/client.ts";
import { createKindPaths } from "../../cluster/client/discovery.ts";
import { Controller, type ControllerOptions } from "../../cluster/controller/controller.ts";
import { createWrites } from "../../cluster/controller/planned-writes.ts";
import { LeaderElection } from "../../cluster/leader-election/leader-election.ts";
import { LEASE_TIMES } from "../../cluster/leader-election/lease-state.ts";
import type { ClusterSource } from "../../cluster/source/cluster-source.ts";
import { createNeeds } from "../../cluster/source/fetch-needs.ts";
import type { JsonObject } from "../../core/json.ts";
import type { Log } from "../../core/log.ts";

interface LeaderOptions extends Pick<ControllerOptions, "tallies" | "publish"> {
  readonly client: Client;
  readonly source: ClusterSource;
  /** The Lease, in the namespace of the installation. */
  readonly lease: string;
  /** Unique among the replicas: the pod's name. */
  readonly identity: string;
  /** The owner of the Lease, as an ownerReference. @default none */
  readonly owner?: JsonObject | undefined;
  readonly log: Log;
  /** The work of a leader beside reconciling. @default none */
  readonly beside?: { readonly start: () => void; readonly stop: () => Promise<unknown> | undefined };
}

/** A replica's part in leader election; the leader runs the reconcilers of all modules. */
export class Leader {
  readonly controller: Controller;
  readonly #options: LeaderOptions;
  readonly #lease: LeaderElection;
  #resync: NodeJS.Timeout | undefined;
  /** Aborted when this time of leading ends. */
  #term = new AbortController();

  constructor(options: LeaderOptions) {
    this.#options = options;
    const { client, source, lease, identity, owner, log, tallies, publish } = options;
    const { assembly, resources } = source;
    this.#lease = new LeaderElection({
      client,
      namespace: assembly.installation.namespace,
      name: lease,
      identity,
      owner,
      onStartedLeading: () => this.#onStartedLeading(),
      onStoppedLeading: () => this.#onStoppedLeading(),
      onError: (why) => log.warn({ error: why }, "failed to acquire or renew the lease"),
    });
    this.controller = new Controller({
      modules: assembly.modules,
      view: () => assembly.view,
      fetch: createNeeds(client, resources, undefined, source.lists),
      write: createWrites(client, resources, createKindPaths(client)),
      has: source.cache.has,
      leading: () => this.leading,
      log,
      assembly,
      ...(tallies === undefined ? {} : { tallies }),
      ...(publish === undefined ? {} : { publish }),
    });
    source.onChange((changes) => this.controller.changed(changes));
  }

  get leading(): boolean {
    return this.#lease.leading;
  }

  start(): void {
    this.#lease.start();
  }

  stop(): Promise<void> {
    return this.#lease.stop();
  }

  #onStartedLeading(): void {
    const { log, source, beside } = this.#options;
    log.info({}, "started leading");
    beside?.start();
    // The leader of a Lease that was deleted writes until its renewal fails, and the view has no statuses: a change of one is not seen.
    this.#resync = setTimeout(() => this.controller.resync(), LEASE_TIMES.durationMs).unref();
    this.#term = new AbortController();
    const { signal } = this.#term;
    // Leader-only resources must be synced before anything is planned with them. `leading` may be false for the moment in which a
    // renewal is late: the controller checks it before every write.
    source.cache.startLeading().then(
      () => signal.aborted || this.controller.start(),
      (error: unknown) => {
        // Also rejected by the end of leading.
        if (!signal.aborted) log.warn({ error: String(error) }, "failed to sync leader-only resources");
      },
    );
  }

  async #onStoppedLeading(): Promise<void> {
    const { log, source, beside } = this.#options;
    log.info({}, "stopped leading");
    this.#term.abort();
    clearTimeout(this.#resync);
    await Promise.all([this.controller.stop(), beside?.stop(), source.cache.stopLeading()]);
  }
}
