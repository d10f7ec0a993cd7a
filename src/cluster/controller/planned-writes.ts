import { isObject, type Json, type JsonObject, stringAt } from "../../core/json.ts";
import type { PlannedWrite } from "../../core/module/reconciler.ts";
import { errorMessage, isNotFound, responseMessage } from "../client/api-response.ts";
import type { ApiResponse, Client } from "../client/client.ts";
import type { ResourceResolver } from "../client/discovery.ts";
import type { PathOfObject } from "../client/kind-paths.ts";
import { describeTarget, type Target } from "../client/object-access.ts";

/** Under this name usher owns fields. */
export const FIELD_MANAGER = "usher";

/** `conflict`: what the plan rests on has moved on, or is gone; it must be made anew. */
export type WriteResult = "done" | "conflict" | { readonly failed: string };

export type MakeWrite = (write: PlannedWrite) => Promise<WriteResult>;

/**
 * Makes planned writes, each bound to a version: a leader that was held up for so long that it no longer leads does not know it
 * yet, and what it then still sends must conflict with what its successor has written.
 */
export function createWrites(
  client: Client,
  resources: ResourceResolver,
  pathOfObject: PathOfObject,
): MakeWrite {
  return async (write) => {
    try {
      if ("apply" in write) return await apply(client, await pathOfObject(write.apply), write);
      const target = "delete" in write ? write.delete : write.of;
      const path = await resources.pathOf(target.resource, target.namespace, target.name);
      if ("delete" in write) return await remove(client, path, target, write.resourceVersion);
      if ("patch" in write) return await patch(client, path, target, write.patch, write.resourceVersion);
      return await status(client, path, target, write.status, write.resourceVersion);
    } catch (error) {
      return { failed: errorMessage(describeWrite(write), error) };
    }
  };
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
 * Puts the version that we know into the object, and the API server compares it with the stored one. A `test` operation would do
 * as well, but is answered like a bad patch (422), so that a conflict could only be told by its wording.
 */
function guard(resourceVersion: string): Json {
  return { op: "add", path: "/metadata/resourceVersion", value: resourceVersion };
}

/**
 * Forced: the object is wholly ours, so a field that somebody else took is taken back. Where it was not there when it was planned, no
 * version can say so to the API server, so it is looked for just before.
 */
async function apply(
  client: Client,
  path: string,
  write: Extract<PlannedWrite, { apply: JsonObject }>,
): Promise<WriteResult> {
  const what = describeWrite(write);
  const { apply: object, resourceVersion } = write;
  const name = stringAt(object, "metadata", "name") ?? "";
  if (resourceVersion === undefined) {
    const before = await client.request("GET", path);
    if (before.status === 200) return "conflict";
    if (!isNotFound(before, name)) return { failed: responseMessage(what, before) };
  }
  const metadata = isObject(object["metadata"]) ? object["metadata"] : {};
  const body =
    resourceVersion === undefined ? object : { ...object, metadata: { ...metadata, resourceVersion } };
  const answer = await client.request("PATCH", `${path}?fieldManager=${FIELD_MANAGER}&force=true`, {
    body,
    contentType: "application/apply-patch+yaml",
  });
  return resultOf(what, answer, name);
}

async function patch(
  client: Client,
  path: string,
  target: Target,
  operations: readonly Json[],
  resourceVersion: string,
): Promise<WriteResult> {
  const answer = await sendPatch(client, path, operations, resourceVersion);
  return resultOf(`patch ${describeTarget(target)}`, answer, target.name);
}

/**
 * The whole status is replaced: what is no longer so goes. A kind whose definition has no status is answered as if the object did
 * not exist, so it is looked for; to plan it again would not help.
 */
async function status(
  client: Client,
  path: string,
  target: Target,
  value: JsonObject,
  resourceVersion: string,
): Promise<WriteResult> {
  const what = `status of ${describeTarget(target)}`;
  const operations = [{ op: "add", path: "/status", value }];
  const answer = await sendPatch(client, `${path}/status`, operations, resourceVersion);
  if (answer.status === 404 && (await client.request("GET", path)).status === 200)
    return { failed: `${what}: its CustomResourceDefinition has no status subresource` };
  return resultOf(what, answer, target.name);
}

function sendPatch(
  client: Client,
  path: string,
  operations: readonly Json[],
  resourceVersion: string,
): Promise<ApiResponse> {
  return client.request("PATCH", `${path}?fieldManager=${FIELD_MANAGER}`, {
    body: [...operations, guard(resourceVersion)],
    contentType: "application/json-patch+json",
  });
}

async function remove(
  client: Client,
  path: string,
  target: Target,
  resourceVersion: string,
): Promise<WriteResult> {
  const body = { apiVersion: "v1", kind: "DeleteOptions", preconditions: { resourceVersion } };
  const answer = await client.request("DELETE", path, { body });
  // Somebody did it before us.
  if (isNotFound(answer, target.name)) return "done";
  return resultOf(`delete ${describeTarget(target)}`, answer, target.name);
}

function resultOf(what: string, answer: ApiResponse, name: string): WriteResult {
  if (answer.status < 300) return "done";
  if (answer.status === 409 || isNotFound(answer, name)) return "conflict";
  return { failed: responseMessage(what, answer) };
}
