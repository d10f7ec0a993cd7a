import type { Client } from "../../cluster/client/client.ts";
import { pause } from "../../cluster/client/retry.ts";
import type { Assembly } from "../../core/evaluate/assembly.ts";
import type { JsonObject } from "../../core/json.ts";
import type { Log } from "../../core/log.ts";
import { kindResource } from "../../core/policy/kind.ts";
import { registeredKinds } from "../../core/registration/index.ts";
import type { Certificates } from "../certificates/certificates.ts";
import { describeObject, Objects } from "../install/apply.ts";
import { predecessorsOf } from "../install/install-plan.ts";
import { conflictingCrd, describeConflictingCrd, isOurs } from "../install/ownership-conflict.ts";
import { brokenPolicies, resourceKinds } from "../install/stored-policies.ts";
import { isNewer } from "../install/version.ts";
import { crdDeviations } from "../webhooks/deviation.ts";
import { WebhookController } from "../webhooks/webhook-controller.ts";
import { Repairs } from "./repairs.ts";
import { RepeatedLog } from "./repeated-log.ts";

export interface InstallationControllerOptions {
  readonly client: Client;
  readonly assembly: Assembly;
  readonly certificates: Pick<
    Certificates,
    "bundle" | "ownAuthority" | "nextAuthority" | "pathToken" | "reconcile" | "refresh"
  >;
  readonly log: Log;
  readonly version: string;
  /** Asked before every write. @default while it is started */
  readonly leading?: () => boolean;
  /** Whether this replica has read all and answers. @default yes */
  readonly ready?: () => boolean;
  /** @default usher */
  readonly service?: string;
  /** Milliseconds, of a clock that nobody sets: how long something was trusted must not depend on that. */
  readonly clock?: () => number;
  readonly lookEveryMs?: number;
}

/** An edit stands for so long at most. Four small reads each time: far less than a watch that must be watched itself. */
const LOOK_EVERY_MS = 3_000;

/** When policies come by the hundred, hooks follow them once for all that came in this time. */
const GATHER_MS = 200;

/** CRDs are large and hardly ever edited: they are looked at as seldom as this many looks take. */
const CRDS_EVERY = 10;

/**
 * What the leader keeps right while it leads: the certificate, both webhook configurations as the policies of the moment ask for
 * them, and the CRDs. Not its roles, its Deployment or its Service: those are the administrator's, and usher may not touch them.
 */
export class InstallationController {
  readonly #options: InstallationControllerOptions;
  readonly #objects: Objects;
  readonly #tellings: RepeatedLog;
  readonly #repairs: Repairs;
  readonly #webhooks: WebhookController;
  /** Made when they are first needed, which in most replicas is never. */
  #crds: readonly JsonObject[] | undefined;
  #stop: AbortController | undefined;
  #running: Promise<void> = Promise.resolve();
  #wake: () => void = () => undefined;
  #again = false;

  constructor(options: InstallationControllerOptions) {
    this.#options = options;
    this.#objects = new Objects(options.client);
    const clock = options.clock ?? (() => performance.now());
    this.#tellings = new RepeatedLog(options.log, clock);
    this.#repairs = new Repairs(this.#objects, this.#tellings);
    this.#webhooks = new WebhookController({
      ...options,
      clock,
      objects: this.#objects,
      repairs: this.#repairs,
      tellings: this.#tellings,
    });
  }

  /** To be called when leading begins. */
  start(): void {
    if (this.#stop !== undefined) return;
    this.#stop = new AbortController();
    this.#webhooks.clear();
    this.#repairs.clear();
    this.#tellings.clear();
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
    const { certificates, lookEveryMs = LOOK_EVERY_MS } = this.#options;
    const gatherMs = Math.min(GATHER_MS, lookEveryMs);
    let lookDue = performance.now();
    let crdsDue = lookDue;
    const may = () => this.#may(signal);
    await this.#try("other hands", () => this.#report());
    while (!signal.aborted) {
      this.#again = false;
      const now = performance.now();
      if (now < lookDue) {
        await this.#try("the webhook configurations", () => this.#webhooks.follow(may));
      } else {
        await this.#try("the certificate", () => certificates.reconcile(this.#webhooks.trust));
        await this.#try("the webhook configurations", () => this.#webhooks.keep(may));
        await certificates.refresh();
        if (now >= crdsDue) {
          await this.#try("the CRDs", () => this.#keepCrds(may));
          crdsDue = now + CRDS_EVERY * lookEveryMs;
        }
        lookDue = performance.now() + gatherMs + lookEveryMs;
      }
      await pause(gatherMs, signal);
      await this.#untilDue(lookDue, signal);
    }
  }

  async #untilDue(due: number, signal: AbortSignal): Promise<void> {
    if (this.#again) return;
    const woken = new AbortController();
    this.#wake = () => woken.abort();
    // A timer may be early by a part of a millisecond, which would be one gathering too late.
    await pause(Math.max(0, due - performance.now()) + 1, AbortSignal.any([signal, woken.signal]));
  }

  async #try(what: string, work: () => Promise<void>): Promise<void> {
    try {
      await work();
      this.#tellings.worked(what);
    } catch (error) {
      this.#tellings.failed(what, error, "can't keep the installation right; trying again");
    }
  }

  async #keepCrds(may: () => boolean): Promise<void> {
    const { assembly, version } = this.#options;
    this.#crds ??= registeredKinds(assembly.modules, version);
    for (const wanted of this.#crds) {
      const live = await this.#objects.read(wanted);
      if (live !== undefined && !isOurs(live)) {
        this.#tellings.left("a CRD", describeConflictingCrd(conflictingCrd(wanted, live)));
        continue;
      }
      // While versions change over, an older leader must not take the fields of a newer CRD away.
      if (live !== undefined && isNewer(live, version)) continue;
      const deviations = live === undefined ? ["missing"] : crdDeviations(wanted, live);
      if (deviations.length === 0 || this.#repairs.isInVain(wanted, live) || !may()) continue;
      await this.#repairs.write(wanted, live, crdDeviations);
      this.#options.log.info({ object: describeObject(wanted), deviations }, "CRD set right");
    }
  }

  #may(signal: AbortSignal): boolean {
    return !signal.aborted && (this.#options.leading?.() ?? true);
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
}
