import { at, isObject, type Json, type JsonObject, stringAt } from "../../core/json.ts";
import { nameOf, namespaceOf } from "../../core/kubernetes/object.ts";
import { retryAfterMs } from "../client/api-response.ts";
import type { ApiResponse } from "../client/client.ts";
import type { ListPage } from "../client/list-pages.ts";
import type { ReceivedObject, ReflectorInput } from "./reflector-steps.ts";

/** Annotates the bookmark that ends the initial events of a streaming list. */
const INITIAL_EVENTS_END = "k8s.io/initial-events-end";

/** Reduces an object to the fields that modules read, as soon as it is parsed. */
export type Prune = (object: JsonObject) => JsonObject;

/** Parses a watch event. Throws for anything else: the stream can't be trusted any further. */
export function inputOf(line: string, prune: Prune): ReflectorInput {
  const event = JSON.parse(line) as Json;
  const object = at(event, "object");
  const type = stringAt(event, "type");
  if (!isObject(object)) throw new Error("watch event without an object");
  const version = stringAt(object, "metadata", "resourceVersion") ?? "";
  switch (type) {
    case "ADDED":
    case "MODIFIED":
      return { saw: "object", received: receivedObject(object, prune), version };
    case "DELETED":
      return { saw: "deletion", received: receivedObject(object, prune), version };
    case "BOOKMARK": {
      const annotation = stringAt(object, "metadata", "annotations", INITIAL_EVENTS_END);
      return { saw: "bookmark", version, endOfList: annotation === "true" };
    }
    case "ERROR":
      return errorStatus(statusCode(object), retryAfterMs({ headers: {}, body: object }));
    default:
      throw new Error(`watch event of unknown type ${JSON.stringify(type)}`);
  }
}

/** A page of a list. Throws if it has no version to watch from. */
export function pageOf(
  { items, resourceVersion: version, next, skipped }: ListPage,
  prune: Prune,
): ReflectorInput {
  if (version === "") throw new Error("response to a list has no metadata.resourceVersion");
  const received = items.map((item) => receivedObject(item, prune));
  return { saw: "page", items: received, version, next, ...(skipped === undefined ? {} : { skipped }) };
}

export function rejectionOf(response: ApiResponse): ReflectorInput {
  return errorStatus(response.status, retryAfterMs(response));
}

function errorStatus(status: number, afterMs: number | undefined): ReflectorInput {
  return { saw: "error status", status, retryAfterMs: afterMs };
}

/** The code of a Status in a stream; some proxies and old servers send only the reason. */
function statusCode(status: JsonObject): number {
  const code = at(status, "code");
  const reason = stringAt(status, "reason");
  if (reason === "Expired" || reason === "Gone") return 410;
  return typeof code === "number" && code > 0 ? code : 500;
}

function receivedObject(object: JsonObject, prune: Prune): ReceivedObject {
  return { namespace: namespaceOf(object), name: nameOf(object), object: prune(object) };
}
