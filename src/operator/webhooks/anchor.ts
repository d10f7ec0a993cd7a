import { StatusError } from "../../cluster/client/api-response.ts";
import { equal, isObject, type Json, type JsonObject, listAt } from "../../core/json.ts";
import { isBeingDeleted, ownerReference } from "../../core/kubernetes/object.ts";
import type { Log } from "../../core/log.ts";
import { anchor } from "../../core/registration/managed-objects.ts";
import { OWN_NAMES } from "../../core/registration/names.ts";
import type { DeduplicatedLog } from "../deduplicated-log.ts";
import type { Objects } from "../install/apply.ts";
import { type ManagerName, managerOf } from "../install/manager.ts";

/** Argo CD deletes no object that has an owner, and Gardener removes owners every minute. */
const OWNERLESS: ReadonlySet<ManagerName | undefined> = new Set(["Argo CD", "Gardener"]);

interface AnchorOptions {
  readonly objects: Objects;
  readonly deduplicated: DeduplicatedLog;
  readonly log: Log;
  /** Usher's own. */
  readonly namespace: string;
}

/**
 * The anchor as the leader finds it, see `anchor` of registration. It gets usher's Namespace as its owner, so that the webhooks go with
 * either of both. Without the anchor usher is being removed, or is not yet whole: then it writes nothing.
 */
export class Anchor {
  readonly #options: AnchorOptions;
  #ownership: AnchorOwnership | undefined;

  constructor(options: AnchorOptions) {
    this.#options = options;
  }

  clear(): void {
    this.#ownership = undefined;
  }

  /** As of the last reconcile; absent if nothing may be written. */
  get ownership(): AnchorOwnership | undefined {
    return this.#ownership;
  }

  async reconcile(may: () => boolean): Promise<void> {
    const { objects, deduplicated, log, namespace } = this.#options;
    const home = await objects.read({ apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } });
    const found = await this.#read();
    if (found === "forbidden") {
      this.#ownership = legacy(home);
      return;
    }
    this.#ownership = undefined;
    if (found === undefined || isBeingDeleted(found)) {
      const why = `ClusterRole ${OWN_NAMES.anchor} does not exist`;
      deduplicated.failed(
        "ownership",
        why,
        "nothing is registered; unless usher is being removed, install it again",
      );
      return;
    }
    deduplicated.succeeded("ownership");
    // A namespace may be terminating for hours, and no replica may be left when it is gone.
    if (home !== undefined && isBeingDeleted(home)) {
      if (!may()) return;
      await objects.remove(found);
      log.info({ namespace }, "the namespace is being deleted: webhooks are removed");
      return;
    }
    await this.#adopt(found, home, may);
    this.#ownership = { owner: ownerReference(found), creates: true };
  }

  async #read(): Promise<JsonObject | "forbidden" | undefined> {
    const { objects, deduplicated } = this.#options;
    const wanted = anchor();
    try {
      const live = await objects.read(wanted);
      return live === undefined ? undefined : { ...live, ...wanted, metadata: live["metadata"] ?? {} };
    } catch (error) {
      if (!(error instanceof StatusError) || error.status !== 403) throw error;
      deduplicated.failed(
        "ownership",
        error,
        "webhooks are kept, but none is created: install this version's roles",
      );
      return "forbidden";
    }
  }

  /** Makes usher's Namespace an owner of the anchor. Owners that other tools have added stay. */
  async #adopt(found: JsonObject, home: JsonObject | undefined, may: () => boolean): Promise<void> {
    const { objects, deduplicated } = this.#options;
    const stored = listAt(found, "metadata", "ownerReferences");
    const withoutOwner = OWNERLESS.has(managerOf(found)?.name);
    const owners = home === undefined || withoutOwner ? [] : [namespaceOwner(home)];
    const value = [...stored.filter((one) => !isNamespace(one)), ...owners];
    if (equal(stored, value) || !may()) return;
    try {
      await objects.patch(found, [{ op: "add", path: "/metadata/ownerReferences", value }]);
      deduplicated.succeeded("owner of the anchor");
    } catch (error) {
      // Webhooks are still deleted with the anchor.
      deduplicated.failed(
        "owner of the anchor",
        error,
        "failed to make the namespace the anchor's owner, retrying",
      );
    }
  }
}

/** The roles are of a version before the anchor: existing objects keep the namespace as their owner. */
function legacy(home: JsonObject | undefined): AnchorOwnership | undefined {
  return home === undefined || isBeingDeleted(home)
    ? undefined
    : { owner: namespaceOwner(home), creates: false };
}

function isNamespace(owner: Json): boolean {
  return isObject(owner) && owner["kind"] === "Namespace" && owner["apiVersion"] === "v1";
}

function namespaceOwner(home: JsonObject): JsonObject {
  return ownerReference({ ...home, apiVersion: "v1", kind: "Namespace" });
}

/** The owner of the objects that usher writes at run time: they are deleted with it. */
export interface AnchorOwnership {
  /** The ownerReference. */
  readonly owner: JsonObject;
  /** Whether objects that do not exist may be created. */
  readonly creates: boolean;
}

/** Without the owner nothing could answer or repair, so the garbage collector removes these objects with it. */
export function ownedBy({ owner }: AnchorOwnership, objects: readonly JsonObject[]): readonly JsonObject[] {
  return objects.map((object) => {
    const metadata = isObject(object["metadata"]) ? object["metadata"] : {};
    return { ...object, metadata: { ...metadata, ownerReferences: [owner] } };
  });
}
