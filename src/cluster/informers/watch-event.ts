import { at, isObject, type Json, type JsonObject, stringAt } from "../../core/json.ts";
import { nameOf, namespaceOf } from "../../core/kubernetes/object.ts";
import { retryAfterMs } from "../client/api-response.ts";
import type { ApiResponse } from "../client/client.ts";
import { pageIn } from "../client/list-pages.ts";
import type { Arrival, Input } from "./reflector-steps.ts";

/** The mark of the bookmark that ends the beginning of a streaming list. */
const END_OF_LIST = "k8s.io/initial-events-end";

/** Reduces an object to what somebody reads, as soon as it is parsed. */
export type Prune = (object: JsonObject) => JsonObject;

/** What a line of a watch says. Throws where it is none: then the stream can't be trusted any further. */
export function inputOf(line: string, prune: Prune): Input {
  const event = JSON.parse(line) as Json;
  const object = at(event, "object");
  const type = stringAt(event, "type");
  if (!isObject(object)) throw new Error("a watch sent an event without an object");
  const version = stringAt(object, "metadata", "resourceVersion") ?? "";
  switch (type) {
    case "ADDED":
    case "MODIFIED":
      return { saw: "object", arrival: arrivalOf(object, prune), version };
    case "DELETED":
      return { saw: "deletion", arrival: arrivalOf(object, prune), version };
    case "BOOKMARK": {
      const mark = stringAt(object, "metadata", "annotations", END_OF_LIST);
      return { saw: "bookmark", version, endOfList: mark === "true" };
    }
    case "ERROR":
      return refusal(statusCode(object), retryAfterMs({ headers: {}, body: object }));
    default:
      throw new Error(`a watch sent an event of the unknown type ${JSON.stringify(type)}`);
  }
}

/** A page of a list. Throws where it is none: what a list does not have is gone, so nothing else may pass for an empty one. */
export function pageOf(body: Json, prune: Prune): Input {
  const page = pageIn(body);
  if (page === undefined) throw new Error("a list was answered with something that has no items");
  const { items, resourceVersion: version, next } = page;
  if (version === "")
    throw new Error("a list was answered with something that has no metadata.resourceVersion");
  return { saw: "page", items: items.map((item) => arrivalOf(item, prune)), version, next };
}

export function rejectionOf(answer: ApiResponse): Input {
  return refusal(answer.status, retryAfterMs(answer));
}

function refusal(status: number, afterMs: number | undefined): Input {
  return { saw: "refusal", status, retryAfterMs: afterMs };
}

/** A Status in a stream has its code inside; some proxies and old servers give only the reason. */
function statusCode(status: JsonObject): number {
  const code = at(status, "code");
  const reason = stringAt(status, "reason");
  if (reason === "Expired" || reason === "Gone") return 410;
  return typeof code === "number" && code > 0 ? code : 500;
}

function arrivalOf(object: JsonObject, prune: Prune): Arrival {
  return { namespace: namespaceOf(object), name: nameOf(object), object: prune(object) };
}
