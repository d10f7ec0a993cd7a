import { StatusError } from "../../cluster/client/api-response.ts";
import { listIfServed } from "../../cluster/client/list-pages.ts";
import { managesWebhooks } from "../../core/installation/installation.ts";
import { equal, type JsonObject, stringAt } from "../../core/json.ts";
import { nameOf, namespaceOf } from "../../core/kubernetes/object.ts";
import type { Log } from "../../core/log.ts";
import type { Assembly } from "../../core/module/assembly.ts";
import { type ManagedSet, managedLabels, managedSets } from "../../core/registration/managed-objects.ts";
import type { DeduplicatedLog } from "../deduplicated-log.ts";
import { describeObject, type Objects, selectorText } from "../install/apply.ts";
import { isNewer, isWrittenByUsher, ownerOf } from "../install/ownership-conflict.ts";
import { type AnchorOwnership, ownedBy } from "../webhooks/anchor.ts";
import { policyDeviations } from "../webhooks/deviation.ts";
import type { Drift } from "./drift.ts";
import type { Repairs } from "./repairs.ts";

interface ManagedObjectsOptions {
  readonly assembly: Assembly;
  readonly objects: Objects;
  readonly repairs: Repairs;
  readonly deduplicated: DeduplicatedLog;
  readonly drift: Drift;
  readonly log: Log;
  readonly version: string;
  /** Whether all policies are read: before that no object counts as unwanted. */
  readonly ready?: () => boolean;
  /** Their owner; without one, no object is written. */
  readonly ownership: () => AnchorOwnership | undefined;
}

/** Creates, repairs and deletes the objects that modules declare for the current view. */
export class ManagedObjectsController {
  readonly #options: ManagedObjectsOptions;
  /** The desired objects when all of them were last applied. */
  #applied: readonly ManagedSet[] | undefined;

  constructor(options: ManagedObjectsOptions) {
    this.#options = options;
  }

  clear(): void {
    this.#applied = undefined;
  }

  #desired(ownership: AnchorOwnership): readonly ManagedSet[] {
    const { assembly, version } = this.#options;
    return managedSets(assembly, assembly.view, Date.now(), version).map((set) => ({
      ...set,
      desired: ownedBy(ownership, set.desired),
    }));
  }

  /** Reconciles only if the desired objects have changed. */
  async follow(may: () => boolean): Promise<void> {
    const ownership = this.#options.ownership();
    if (ownership === undefined || !this.#manages) return;
    const same =
      this.#applied !== undefined && equal(listed(this.#applied), listed(this.#desired(ownership)));
    if (!same) await this.reconcile(may);
  }

  get #manages(): boolean {
    return managesWebhooks(this.#options.assembly.installation);
  }

  async reconcile(may: () => boolean): Promise<void> {
    if (this.#options.ready?.() === false) return;
    if (!this.#manages) {
      await this.#compare();
      return;
    }
    const ownership = this.#options.ownership();
    if (ownership === undefined) return;
    const sets = this.#desired(ownership);
    this.#applied = undefined;
    const failures: unknown[] = [];
    const refused: Refused[] = [];
    for (const set of sets) {
      // Objects of one module that can't be written must not block those of another.
      await this.#reconcileSet(set, ownership, may, refused).catch(
        (error: unknown) => void failures.push(error),
      );
    }
    const next = "the API server refuses an object of a module; all others are written, see the error";
    this.#options.drift.reportAll("managed objects", refused, next);
    if (failures.length > 0) throw failures[0];
    if (may()) this.#applied = sets;
  }

  /** Another tool writes them, with its own labels and owners: only other differences are reported. */
  async #compare(): Promise<void> {
    const { assembly, version, objects, drift } = this.#options;
    const found = [];
    for (const set of managedSets(assembly, assembly.view, Date.now(), version)) {
      for (const object of set.desired) {
        const live = await objects.read(object);
        const plain = { ...object, metadata: {} };
        found.push({ object, deviations: live === undefined ? ["missing"] : policyDeviations(plain, live) });
      }
      const desired = new Set(set.desired.map(keyOf));
      for (const [key, object] of await storedObjects(objects, set))
        if (!desired.has(key) && isWrittenByUsher(object)) found.push({ object, deviations: ["not wanted"] });
    }
    drift.reportAll("managed objects", found);
  }

  async #reconcileSet(
    set: ManagedSet,
    { creates }: AnchorOwnership,
    may: () => boolean,
    refused: Refused[],
  ): Promise<void> {
    const stored = await storedObjects(this.#options.objects, set);
    for (const wanted of set.desired) {
      if (!may()) return;
      await this.#apply(wanted, stored.get(keyOf(wanted)), creates, may).catch((error: unknown) => {
        if (!isRefusal(error)) throw error;
        refused.push({ object: wanted, deviations: [error.message] });
      });
    }
    const desired = new Set(set.desired.map(keyOf));
    for (const [key, live] of stored) {
      if (desired.has(key) || !isWrittenByUsher(live)) continue;
      if (!may()) return;
      await this.#options.objects.remove(live);
      this.#options.log.info({ object: describeObject(live), module: set.module }, "managed object deleted");
    }
  }

  async #apply(
    wanted: JsonObject,
    listedObject: JsonObject | undefined,
    creates: boolean,
    may: () => boolean,
  ): Promise<void> {
    const { objects, repairs, deduplicated, log, version } = this.#options;
    // Without usher's labels it is in no list: they were removed, or it is another owner's.
    const live = listedObject ?? (await objects.read(wanted));
    if (live !== undefined && !isWrittenByUsher(live)) {
      const object = describeObject(wanted);
      const report = [`${object} belongs to ${ownerOf(live)}`];
      deduplicated.once(report.join(), { report }, "ownership conflict: managed object is left unchanged");
      return;
    }
    if (live === undefined ? !creates : isNewer(live, version)) return;
    const deviations = live === undefined ? ["missing"] : policyDeviations(wanted, live);
    // A process that was suspended during the read may no longer lead.
    if (deviations.length === 0 || repairs.isInVain(wanted, live) || !may()) return;
    await repairs.write(wanted, live, policyDeviations);
    log.info({ object: describeObject(wanted), deviations }, "managed object repaired");
  }
}

/** An object that the API server does not store, and why. */
interface Refused {
  readonly object: JsonObject;
  readonly deviations: readonly string[];
}

/** Whether an API server refuses this object, and not every request of usher. */
function isRefusal(error: unknown): error is StatusError {
  return error instanceof StatusError && REFUSALS.has(error.status);
}

/** Bad request, conflict, too large, invalid. */
const REFUSALS: ReadonlySet<number> = new Set([400, 409, 413, 422]);

/** The stored objects of a module, by what they are. Throws where they can't be listed; a kind that is not served has none. */
export async function storedObjects(
  { client }: Pick<Objects, "client">,
  { module, resources }: Pick<ManagedSet, "module" | "resources">,
): Promise<Map<string, JsonObject>> {
  const found = new Map<string, JsonObject>();
  const labelSelector = selectorText(managedLabels(module));
  for (const { group, version, resource, kind, scope } of resources) {
    const served = { group, version, resource, namespaced: scope === "Namespaced" };
    const apiVersion = group === "" ? version : `${group}/${version}`;
    for (const item of await listIfServed(client, served, undefined, { labelSelector })) {
      const object = { ...item, apiVersion, kind };
      found.set(keyOf(object), object);
    }
  }
  return found;
}

function keyOf(object: JsonObject): string {
  const kind = stringAt(object, "kind") ?? "";
  return [stringAt(object, "apiVersion") ?? "", kind, namespaceOf(object), nameOf(object)].join(" ");
}

function listed(sets: readonly ManagedSet[]): JsonObject[] {
  return sets.flatMap(({ desired }) => desired);
}
