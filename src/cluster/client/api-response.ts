import { at, isObject, type Json, type JsonObject, stringAt } from "../../core/json.ts";
import { type ApiResponse, ConnectionError } from "./client.ts";

/** The API server's message may quote a whole object; its beginning is enough to act on. */
const LONGEST_QUOTE = 300;

/** Caps Retry-After: the API server asks for seconds, and a wrong header must not stop a client for a day. */
const LONGEST_RETRY_AFTER_MS = 60_000;

/** The failed request and the API server's response, for logs and errors. */
export function responseMessage(what: string, response: ApiResponse): string {
  const message = stringAt(response.body, "message") ?? response.text.trim();
  const quote = message.length > LONGEST_QUOTE ? `${message.slice(0, LONGEST_QUOTE)}…` : message;
  return `${what}: the API server answered ${response.status}${quote === "" ? "" : `: ${quote}`}`;
}

export function errorMessage(what: string, error: unknown): string {
  const why = error instanceof Error ? error.message : String(error);
  return error instanceof ConnectionError ? `${what}: no response: ${why}` : `${what}: ${why}`;
}

/** The API server refused a request, or its response is not the requested object. The message has the request and the reason. */
export class StatusError extends Error {
  readonly response: ApiResponse;

  constructor(what: string, response: ApiResponse) {
    super(responseMessage(what, response));
    this.response = response;
  }

  get status(): number {
    return this.response.status;
  }
}

/**
 * Whether the response means that exactly this object does not exist. A missing API, a missing subresource and a proxy
 * answer 404 too, as text or without a name: the object may exist then.
 */
export function isNotFound(response: ApiResponse, name: string): boolean {
  return (
    response.status === 404 &&
    stringAt(response.body, "kind") === "Status" &&
    stringAt(response.body, "reason") === "NotFound" &&
    stringAt(response.body, "details", "name") === name
  );
}

/** Whether a response has this list, possibly empty. Go encodes nil slices as null. */
export function hasList(body: Json | undefined, key: string): boolean {
  const list = at(body, key);
  return Array.isArray(list) || list === null;
}

/** How long the API server asks to wait, by its header or its Status; `undefined` if it does not ask. */
export function retryAfterMs(response: Pick<ApiResponse, "headers" | "body">): number | undefined {
  const details = at(response.body, "details", "retryAfterSeconds");
  const header = response.headers["retry-after"];
  // The header may also be a date. The API server never sends one; for a proxy that does, the client's own back-off
  // applies.
  const seconds = header !== undefined && /^\d+$/.test(header) ? Number(header) : details;
  return typeof seconds === "number" && seconds > 0
    ? Math.min(seconds * 1000, LONGEST_RETRY_AFTER_MS)
    : undefined;
}

/** Drops managedFields: half of an object's bytes, and no decision reads them. */
export function withoutManagedFields(object: JsonObject): JsonObject;
export function withoutManagedFields(object: Json): Json;
export function withoutManagedFields(object: Json): Json {
  if (!isObject(object) || !isObject(object["metadata"])) return object;
  const { managedFields: _fields, ...metadata } = object["metadata"];
  return { ...object, metadata };
}
