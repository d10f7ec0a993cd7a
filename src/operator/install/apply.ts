import { isNotFound, StatusError } from "../../cluster/client/api-response.ts";
import type { ApiResponse, Client } from "../../cluster/client/client.ts";
import { FIELD_MANAGER } from "../../cluster/client/client.ts";
import { createKindPaths, type PathOfObject } from "../../cluster/client/discovery.ts";
import { listAll } from "../../cluster/client/list-pages.ts";
import type { PatchOperation } from "../../core/decision/patch.ts";
import { at, equal, isObject, type JsonObject, stringAt } from "../../core/json.ts";
import { nameOf, namespaceOf, WRITE_METADATA, withoutMetadata } from "../../core/kubernetes/object.ts";

/** The objects of an installation at one API server, each addressed by its apiVersion, kind and name. */
export class Objects {
  readonly client: Client;
  readonly #pathOf: PathOfObject;
  readonly #fieldManager: string;

  constructor(client: Client, fieldManager = FIELD_MANAGER) {
    this.client = client;
    this.#pathOf = createKindPaths(client);
    this.#fieldManager = fieldManager;
  }

  /** False only for the API server's own 404: a refusal or a failure proves nothing. */
  async serves(groupVersion: string): Promise<boolean> {
    const answer = await this.client.request("GET", `/apis/${groupVersion}`);
    if (answer.status !== 200 && answer.status !== 404)
      throw new StatusError(`asking whether ${groupVersion} is served`, answer);
    return answer.status === 200;
  }

  async read(object: JsonObject): Promise<JsonObject | undefined> {
    const answer = await this.client.request("GET", await this.#pathOf(object));
    // Also for an object in a namespace that does not exist.
    if (isNotFound(answer, nameOf(object))) return undefined;
    return bodyOf(`reading ${describeObject(object)}`, answer);
  }

  /**
   * Server-side apply: fields of other managers stay theirs, and fields of the object become usher's. Conditional on
   * the version that the caller saw, if any: acting on an outdated state is a conflict.
   */
  async apply(object: JsonObject, seen?: JsonObject, { dryRun = false } = {}): Promise<JsonObject> {
    const resourceVersion = stringAt(seen, "metadata", "resourceVersion");
    const metadata = isObject(object["metadata"]) ? object["metadata"] : {};
    const body =
      resourceVersion === undefined ? object : { ...object, metadata: { ...metadata, resourceVersion } };
    const query = `fieldManager=${this.#fieldManager}&force=true${dryRun ? "&dryRun=All" : ""}`;
    const answer = await this.client.request("PATCH", `${await this.#pathOf(object)}?${query}`, {
      body,
      contentType: "application/apply-patch+yaml",
    });
    return bodyOf(`applying ${describeObject(object)}`, answer);
  }

  /** Applies a part of the status; fields of other managers stay. */
  async applyStatus({ apiVersion, kind, metadata }: JsonObject, status: JsonObject): Promise<void> {
    const { name, namespace } = isObject(metadata) ? metadata : {};
    const object = { apiVersion, kind, metadata: { name, namespace }, status };
    const query = `fieldManager=${this.#fieldManager}&force=true`;
    const answer = await this.client.request("PATCH", `${await this.#pathOf(object)}/status?${query}`, {
      body: object,
      contentType: "application/apply-patch+yaml",
    });
    bodyOf(`applying the status of ${describeObject(object)}`, answer);
  }

  /** The objects of the same kind; for a namespaced kind those in the same namespace. */
  async list(object: JsonObject): Promise<JsonObject[]> {
    const path = await this.#pathOf(object);
    return listAll(this.client, path.slice(0, path.lastIndexOf("/")), {});
  }

  /** Replaces a field and the owners completely, including values of other managers; conditional on the version that was seen. */
  async replace(object: JsonObject, field: string, seen: JsonObject): Promise<JsonObject> {
    const resourceVersion = stringAt(seen, "metadata", "resourceVersion") ?? "";
    const owners = at(object, "metadata", "ownerReferences");
    const answer = await this.client.request(
      "PATCH",
      `${await this.#pathOf(object)}?fieldManager=${this.#fieldManager}`,
      {
        contentType: "application/json-patch+json",
        body: [
          { op: "add", path: "/metadata/resourceVersion", value: resourceVersion },
          { op: "add", path: `/${field}`, value: object[field] ?? null },
          ...(owners === undefined ? [] : [{ op: "add", path: "/metadata/ownerReferences", value: owners }]),
        ],
      },
    );
    return bodyOf(`repairing ${describeObject(object)}`, answer);
  }

  /** Patches exactly the version that was seen; false if there is another, or none. */
  async patch(seen: JsonObject, operations: readonly PatchOperation[]): Promise<boolean> {
    const value = stringAt(seen, "metadata", "resourceVersion") ?? "";
    const path = `${await this.#pathOf(seen)}?fieldManager=${this.#fieldManager}`;
    const answer = await this.client.request("PATCH", path, {
      contentType: "application/json-patch+json",
      body: [...operations, { op: "add", path: "/metadata/resourceVersion", value }],
    });
    if (answer.status === 409 || isNotFound(answer, nameOf(seen))) return false;
    bodyOf(`patching ${describeObject(seen)}`, answer);
    return true;
  }

  /** Removes labels and annotations of any manager. */
  async dropMarks(object: JsonObject, keys: readonly string[]): Promise<void> {
    const nothing = Object.fromEntries(keys.map((key) => [key, null]));
    const answer = await this.client.request(
      "PATCH",
      `${await this.#pathOf(object)}?fieldManager=${this.#fieldManager}`,
      {
        contentType: "application/merge-patch+json",
        body: { metadata: { labels: nothing, annotations: nothing } },
      },
    );
    bodyOf(`patching ${describeObject(object)}`, answer);
  }

  /** Deletes exactly the object that was seen, not one that replaced it. */
  async remove(seen: JsonObject): Promise<void> {
    const uid = stringAt(seen, "metadata", "uid");
    const answer = await this.client.request("DELETE", await this.#pathOf(seen), {
      body: {
        apiVersion: "v1",
        kind: "DeleteOptions",
        propagationPolicy: "Background",
        ...(uid === undefined ? {} : { preconditions: { uid } }),
      },
    });
    if (answer.status === 409 || isNotFound(answer, nameOf(seen))) return;
    bodyOf(`deleting ${describeObject(seen)}`, answer);
  }
}

function bodyOf(what: string, answer: ApiResponse): JsonObject {
  if (answer.status >= 300 || !isObject(answer.body)) throw new StatusError(what, answer);
  return answer.body;
}

/** Labels as a selector: `a=1,b=2`. */
export function selectorText(labels: Readonly<Record<string, string>>): string {
  return Object.entries(labels)
    .map(([key, value]) => `${key}=${value}`)
    .join(",");
}

/** `Deployment usher-system/usher` */
export function describeObject(object: JsonObject): string {
  const namespace = namespaceOf(object);
  return `${stringAt(object, "kind") ?? ""} ${namespace === "" ? "" : `${namespace}/`}${nameOf(object)}`;
}

/** Whether a write changed nothing but managedFields and versions. */
export function sameObject(a: JsonObject, b: JsonObject): boolean {
  return equal(withoutMetadata(a, WRITE_METADATA), withoutMetadata(b, WRITE_METADATA));
}
