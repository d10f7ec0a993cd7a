import type { Fact } from "../../core/decision/need.ts";
import type { Deadline } from "../../core/evaluate/source.ts";
import { isObject, type JsonObject, stringAt } from "../../core/json.ts";
import { errorFact, unservedFact } from "./api-fact.ts";
import { errorMessage, isNotFound, responseMessage, withoutManagedFields } from "./api-response.ts";
import type { Client } from "./client.ts";
import type { ResourceResolver } from "./discovery.ts";
import { requestWithRetry, retryDelayMs } from "./retry.ts";

/** One object by name. */
export interface ObjectTarget {
  readonly resource: string;
  readonly namespace?: string;
  readonly name: string;
}

export function describeTarget({ resource, namespace, name }: ObjectTarget): string {
  return `${resource} ${namespace === undefined ? "" : `${namespace}/`}${name}`;
}

/** Reads one object from etcd: a GET without resourceVersion bypasses the watch cache; one with `0` is answered by it. */
export async function readObject(
  client: Client,
  resources: ResourceResolver,
  target: ObjectTarget,
  deadline: Deadline,
  anyVersion = false,
): Promise<Fact> {
  const what = describeTarget(target);
  try {
    const path = await resources.pathOf(target.resource, target.namespace, target.name);
    const query = anyVersion ? "?resourceVersion=0" : "";
    const answer = await requestWithRetry(client, "GET", `${path}${query}`, {}, deadline);
    if (isNotFound(answer, target.name)) return { absent: "NotFound" };
    if (answer.status !== 200 || !isObject(answer.body))
      return await unservedFact(what, resources, target.resource, answer, deadline.signal);
    return { found: withoutManagedFields(answer.body), complete: true };
  } catch (error) {
    return errorFact(what, error);
  }
}

/** The result of a guarded write. `unknown`: the connection broke, so the write may have happened. */
export type SwapResult =
  | { readonly written: JsonObject; readonly version: string }
  | "conflict"
  | "unknown"
  | { readonly retryDelayMs: number }
  | { readonly failed: string };

/** Writes a whole object if its stored version is still `version`; `undefined`: creates it. */
export async function swapObject(
  client: Client,
  resources: ResourceResolver,
  target: ObjectTarget,
  object: JsonObject,
  version: string | undefined,
  signal: AbortSignal,
): Promise<SwapResult> {
  const what = describeTarget(target);
  const { resource, namespace, name } = target;
  let path: string;
  try {
    path = await resources.pathOf(resource, namespace, version === undefined ? undefined : name);
  } catch (error) {
    return { failed: errorMessage(what, error) };
  }
  try {
    const answer = await client.request(version === undefined ? "POST" : "PUT", path, {
      body: withIdentity(object, target, version),
      signal,
    });
    const wait = retryDelayMs(answer);
    if (wait !== undefined) return { retryDelayMs: wait };
    // A POST conflicts as AlreadyExists; a PUT by its version, or because the object was deleted.
    if (answer.status === 409 || isNotFound(answer, name)) return "conflict";
    const stored = stringAt(answer.body, "metadata", "resourceVersion");
    if (answer.status >= 300 || !isObject(answer.body) || stored === undefined)
      return { failed: responseMessage(`writing ${what}`, answer) };
    return { written: withoutManagedFields(answer.body) as JsonObject, version: stored };
  } catch {
    return "unknown";
  }
}

/** The object with its name, namespace and precondition, regardless of metadata that its author copied. */
function withIdentity(
  object: JsonObject,
  { namespace, name }: ObjectTarget,
  version: string | undefined,
): JsonObject {
  const metadata = isObject(object["metadata"]) ? object["metadata"] : {};
  const { managedFields: _managers, resourceVersion: _version, ...kept } = metadata;
  return {
    ...object,
    metadata: {
      ...kept,
      name,
      ...(namespace === undefined || namespace === "" ? {} : { namespace }),
      ...(version === undefined ? {} : { resourceVersion: version }),
    },
  };
}
