import type { ApiResponse } from "../../../src/cluster/client/client.ts";
import { isObject, type JsonObject, listAt, stringAt } from "../../../src/core/json.ts";
import { isBeingDeleted, nameOf, namespaceOf } from "../../../src/core/kubernetes/object.ts";
import type { ApiServer } from "./api-server.ts";
import { type Resource, servedResources, storedName } from "./resources.ts";
import type { Store, StoreEvent } from "./store.ts";

/** The control plane's own controllers, as clients of one API server: each step is a request that may fail. */

export interface ControllersOptions {
  readonly schedule: (delayMs: number, run: () => void) => unknown;
  /** Milliseconds from a change to what the controllers do about it. @default 10 */
  readonly delay?: () => number;
}

const CRDS = "customresourcedefinitions.apiextensions.k8s.io";
const CRD_FINALIZER = "customresourcecleanup.apiextensions.k8s.io";
const USER = { username: "system:kube-controller-manager", groups: ["system:authenticated"] };

/** Steps that failed are repeated after this time. */
const RETRY_MS = 1_000;

/**
 * The garbage collector (background, foreground and orphan), the deletion of namespaces and of custom resources, and
 * the establishment of CustomResourceDefinitions.
 */
export class Controllers {
  readonly #store: Store;
  readonly #server: ApiServer;
  readonly #options: ControllersOptions;
  #scheduled = false;
  #running = false;

  constructor(store: Store, server: ApiServer, options: ControllersOptions) {
    this.#store = store;
    this.#server = server;
    this.#options = options;
    store.subscribe((event) => {
      if (concerns(event)) this.#later();
    });
    this.#later();
  }

  #later(delayMs = this.#options.delay?.() ?? 10): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    this.#options.schedule(delayMs, () => {
      this.#scheduled = false;
      if (this.#running) this.#later();
      else void this.#run();
    });
  }

  async #run(): Promise<void> {
    this.#running = true;
    let failed = false;
    for (const step of this.#steps()) {
      const { status } = await step();
      // An object that is gone, or has changed, is looked at again after its next event.
      if (status >= 400 && status !== 404 && status !== 409) failed = true;
    }
    this.#running = false;
    if (failed) this.#later(RETRY_MS);
  }

  *#steps(): Generator<() => Promise<ApiResponse>> {
    const resources = onePerKind(servedResources(this.#store, this.#store.revision));
    const objects = resources.flatMap((resource) =>
      this.#store.list(storedName(resource)).map(({ object }) => ({ resource, object })),
    );
    for (const { object } of this.#store.list(CRDS)) yield* this.#definition(object, resources);
    for (const { object } of this.#store.list("namespaces")) yield* this.#namespace(object, objects);
    const uids = new Set(objects.map(({ object }) => uidOf(object)));
    for (const owner of objects) yield* this.#owner(owner, objects);
    for (const dependent of objects) yield* this.#dependent(dependent, uids);
  }

  *#definition(crd: JsonObject, resources: readonly Resource[]): Generator<() => Promise<ApiResponse>> {
    const path = `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${nameOf(crd)}`;
    const finalizers = listAt(crd, "metadata", "finalizers");
    if (isBeingDeleted(crd)) {
      const stored = resources.filter((one) => `${one.resource}.${one.group}` === nameOf(crd));
      const left = stored.flatMap((resource) =>
        this.#store.list(storedName(resource)).map(({ object }) => ({ resource, object })),
      );
      for (const one of left) if (!isBeingDeleted(one.object)) yield () => this.#delete(one);
      if (left.length === 0 && finalizers.includes(CRD_FINALIZER))
        yield () =>
          this.#setFinalizers(
            path,
            crd,
            finalizers.filter((one) => one !== CRD_FINALIZER),
          );
      return;
    }
    if (!finalizers.includes(CRD_FINALIZER))
      yield () => this.#setFinalizers(path, crd, [...finalizers, CRD_FINALIZER]);
    if (listAt(crd, "status", "conditions").length > 0) return;
    const { names } = crd["spec"] as JsonObject;
    const lastTransitionTime = stringAt(crd, "metadata", "creationTimestamp");
    const condition = (type: string, reason: string, message: string) => ({
      type,
      status: "True",
      lastTransitionTime,
      reason,
      message,
    });
    const conditions = [
      condition("NamesAccepted", "NoConflicts", "no conflicts found"),
      condition("Established", "InitialNamesAccepted", "the initial names have been accepted"),
    ];
    yield () => this.#patch(`${path}/status`, { status: { acceptedNames: names, conditions } });
  }

  *#namespace(namespace: JsonObject, objects: readonly Found[]): Generator<() => Promise<ApiResponse>> {
    if (!isBeingDeleted(namespace)) return;
    const content = objects.filter(({ object }) => namespaceOf(object) === nameOf(namespace));
    for (const one of content) if (!isBeingDeleted(one.object)) yield () => this.#delete(one);
    if (content.length > 0 || listAt(namespace, "spec", "finalizers").length === 0) return;
    const path = `/api/v1/namespaces/${nameOf(namespace)}/finalize`;
    const body = { ...namespace, spec: { finalizers: [] } };
    yield () => this.#server.handle({ method: "PUT", path, body, user: USER });
  }

  /** An owner that waits for its dependents. */
  *#owner(owner: Found, objects: readonly Found[]): Generator<() => Promise<ApiResponse>> {
    const { object } = owner;
    if (!isBeingDeleted(object)) return;
    const finalizers = listAt(object, "metadata", "finalizers");
    const kind = ["foregroundDeletion", "orphan"].find((one) => finalizers.includes(one));
    if (kind === undefined) return;
    const references = (one: Found) =>
      listAt(one.object, "metadata", "ownerReferences").filter(
        (ref) => stringAt(ref, "uid") === uidOf(object),
      );
    const dependents = objects.filter((one) => references(one).length > 0);
    for (const one of dependents) {
      if (kind === "orphan") yield () => this.#release(one, (uid) => uid === uidOf(object));
      else if (!isBeingDeleted(one.object)) yield () => this.#delete(one, "Foreground");
    }
    const blocks = (one: Found) =>
      kind === "foregroundDeletion" &&
      references(one).some((ref) => isObject(ref) && ref["blockOwnerDeletion"] === true);
    if (!dependents.some(blocks))
      yield () =>
        this.#setFinalizers(
          pathOf(owner),
          object,
          finalizers.filter((one) => one !== kind),
        );
  }

  /** A dependent of owners that are gone. */
  *#dependent(found: Found, uids: ReadonlySet<string>): Generator<() => Promise<ApiResponse>> {
    const owners = listAt(found.object, "metadata", "ownerReferences").map(
      (one) => stringAt(one, "uid") ?? "",
    );
    const gone = owners.filter((uid) => !uids.has(uid));
    if (gone.length === 0 || isBeingDeleted(found.object)) return;
    if (gone.length === owners.length) yield () => this.#delete(found);
    else yield () => this.#release(found, (uid) => gone.includes(uid));
  }

  #release(found: Found, isGone: (uid: string) => boolean): Promise<ApiResponse> {
    const owners = listAt(found.object, "metadata", "ownerReferences");
    const left = owners.filter((one) => !isGone(stringAt(one, "uid") ?? ""));
    const { uid, resourceVersion } = found.object["metadata"] as JsonObject;
    const metadata = { uid, resourceVersion, ownerReferences: left.length === 0 ? null : left };
    return this.#patch(pathOf(found), { metadata });
  }

  #setFinalizers(path: string, object: JsonObject, finalizers: readonly unknown[]): Promise<ApiResponse> {
    const { resourceVersion } = object["metadata"] as JsonObject;
    return this.#patch(path, { metadata: { resourceVersion, finalizers: finalizers as string[] } });
  }

  #patch(path: string, body: JsonObject): Promise<ApiResponse> {
    const contentType = "application/merge-patch+json";
    const manager = path.includes("?") ? "" : "?fieldManager=kube-controller-manager";
    return this.#server.handle({ method: "PATCH", path: `${path}${manager}`, body, contentType, user: USER });
  }

  #delete(found: Found, propagationPolicy = "Background"): Promise<ApiResponse> {
    const uid = uidOf(found.object);
    const body = { kind: "DeleteOptions", apiVersion: "v1", propagationPolicy, preconditions: { uid } };
    return this.#server.handle({ method: "DELETE", path: pathOf(found), body, user: USER });
  }
}

interface Found {
  readonly resource: Resource;
  readonly object: JsonObject;
}

/** Whether a change may need one of these controllers. */
function concerns({ type, resource, object, previous }: StoreEvent): boolean {
  return (
    type === "DELETED" ||
    resource === CRDS ||
    isBeingDeleted(object) ||
    (listAt(object, "metadata", "ownerReferences").length > 0 &&
      stringAt(previous, "metadata", "uid") === undefined)
  );
}

function onePerKind(resources: readonly Resource[]): Resource[] {
  const kinds = new Map(resources.map((one) => [storedName(one), one]));
  return [...kinds.values()];
}

function uidOf(object: JsonObject): string {
  return stringAt(object, "metadata", "uid") ?? "";
}

function pathOf({ resource: { group, version, resource }, object }: Found): string {
  const root = group === "" ? `/api/${version}` : `/apis/${group}/${version}`;
  const namespace = namespaceOf(object);
  return `${root}${namespace === "" ? "" : `/namespaces/${namespace}`}/${resource}/${nameOf(object)}`;
}
