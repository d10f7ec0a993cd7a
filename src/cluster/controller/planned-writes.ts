import { isObject, type Json, type JsonObject, stringAt } from "../../core/json.ts";
import type { PlannedWrite } from "../../core/module/reconciler.ts";
import { errorMessage, isNotFound, responseMessage } from "../client/api-response.ts";
import type { ApiResponse, Client } from "../client/client.ts";
import { FIELD_MANAGER } from "../client/client.ts";
import type { PathOfObject, ResourceResolver } from "../client/discovery.ts";
import { describeTarget, type ObjectTarget } from "../client/object-access.ts";

/** `conflict`: the object that the write is based on has changed or was deleted; the key must be reconciled again. */
export type PlannedWriteResult =
  | "done"
  /** The resourceVersion of the object after the write. */
  | { readonly wrote: string }
  | "conflict"
  | { readonly failed: string };

export type MakeWrite = (write: PlannedWrite) => Promise<PlannedWriteResult>;

interface SendOptions {
  readonly fieldManager: string;
  /** Runs admission and stores nothing. */
  readonly dryRun?: boolean;
}

/** Sends one write. `conflict`: the object to create already exists. */
export type SendWrite = (write: PlannedWrite, options: SendOptions) => Promise<ApiResponse | "conflict">;

export function createSender(
  client: Client,
  resources: ResourceResolver,
  pathOfObject: PathOfObject,
): SendWrite {
  return async (write, options) => {
    if ("apply" in write) return apply(client, await pathOfObject(write.apply), write, options);
    const { resource, namespace, name } = "delete" in write ? write.delete : write.of;
    const path = await resources.pathOf(resource, namespace, name);
    if ("delete" in write) return remove(client, path, write.resourceVersion, options);
    const { resourceVersion } = write;
    if ("patch" in write) return patch(client, path, write.patch, resourceVersion, options);
    const operations = [{ op: "add", path: "/status", value: write.status }];
    return patch(client, `${path}/status`, operations, resourceVersion, options);
  };
}

/**
 * Sends planned writes, each conditional on a resourceVersion: a leader that was paused does not know yet that it lost
 * the lease, and its late writes must conflict with those of its successor.
 */
export function createWrites(
  client: Client,
  resources: ResourceResolver,
  pathOfObject: PathOfObject,
): MakeWrite {
  const send = createSender(client, resources, pathOfObject);
  return async (write) => {
    const what = describeWrite(write);
    try {
      const response = await send(write, { fieldManager: FIELD_MANAGER });
      if (response === "conflict" || response.status === 409) return "conflict";
      if (response.status < 300) return written(write, response);
      const absent = isNotFound(response, nameIn(write));
      if (absent && "delete" in write) return "done";
      if ("status" in write && response.status === 404 && (await exists(client, resources, write.of)))
        return { failed: `${what}: its CustomResourceDefinition has no status subresource` };
      return absent ? "conflict" : { failed: responseMessage(what, response) };
    } catch (error) {
      return { failed: errorMessage(what, error) };
    }
  };
}

/** The response to a deletion has the version before it, or none. */
function written(write: PlannedWrite, { body }: ApiResponse): PlannedWriteResult {
  const version = "delete" in write ? undefined : stringAt(body, "metadata", "resourceVersion");
  return version === undefined ? "done" : { wrote: version };
}

/** The API server returns 404 for the status of a kind without one, as if the object did not exist; planning again would not help. */
async function exists(
  client: Client,
  resources: ResourceResolver,
  { resource, namespace, name }: ObjectTarget,
): Promise<boolean> {
  return (await client.request("GET", await resources.pathOf(resource, namespace, name))).status === 200;
}

function nameIn(write: PlannedWrite): string {
  if ("apply" in write) return stringAt(write.apply, "metadata", "name") ?? "";
  return "delete" in write ? write.delete.name : write.of.name;
}

/** `apply ConfigMap shop/web`, `patch nodes n1` */
export function describeWrite(write: PlannedWrite): string {
  if ("apply" in write) {
    const namespace = stringAt(write.apply, "metadata", "namespace");
    const resource = stringAt(write.apply, "kind") ?? "";
    const name = stringAt(write.apply, "metadata", "name") ?? "";
    return `apply ${describeTarget({ resource, name, ...(namespace === undefined ? {} : { namespace }) })}`;
  }
  if ("delete" in write) return `delete ${describeTarget(write.delete)}`;
  return `${"status" in write ? "status of" : "patch"} ${describeTarget(write.of)}`;
}

/**
 * Sets the resourceVersion that the plan is based on; the API server compares it with the stored one. A `test`
 * operation would work as well, but fails like an invalid patch (422), so that only the wording would distinguish a
 * conflict.
 */
function guard(resourceVersion: string): Json {
  return { op: "add", path: "/metadata/resourceVersion", value: resourceVersion };
}

/**
 * Forced: usher owns the whole object, so fields of other managers are overwritten. No precondition expresses that an
 * object must not exist yet, so it is read just before.
 */
async function apply(
  client: Client,
  path: string,
  { apply: object, resourceVersion }: Extract<PlannedWrite, { apply: JsonObject }>,
  options: SendOptions,
): Promise<ApiResponse | "conflict"> {
  if (resourceVersion === undefined) {
    const before = await client.request("GET", path);
    if (before.status === 200) return "conflict";
    if (!isNotFound(before, stringAt(object, "metadata", "name") ?? "")) return before;
  }
  const metadata = isObject(object["metadata"]) ? object["metadata"] : {};
  const body =
    resourceVersion === undefined ? object : { ...object, metadata: { ...metadata, resourceVersion } };
  return client.request("PATCH", `${path}?${queryOf(options)}&force=true`, {
    body,
    contentType: "application/apply-patch+yaml",
  });
}

function patch(
  client: Client,
  path: string,
  operations: readonly Json[],
  resourceVersion: string,
  options: SendOptions,
): Promise<ApiResponse> {
  return client.request("PATCH", `${path}?${queryOf(options)}`, {
    body: [...operations, guard(resourceVersion)],
    contentType: "application/json-patch+json",
  });
}

function remove(
  client: Client,
  path: string,
  resourceVersion: string,
  { dryRun }: SendOptions,
): Promise<ApiResponse> {
  const options = { apiVersion: "v1", kind: "DeleteOptions", preconditions: { resourceVersion } };
  // The API server ignores the query of a deletion that has a body.
  const body = dryRun === true ? { ...options, dryRun: ["All"] } : options;
  return client.request("DELETE", path, { body });
}

function queryOf({ fieldManager, dryRun }: SendOptions): string {
  return `fieldManager=${fieldManager}${dryRun === true ? "&dryRun=All" : ""}`;
}
