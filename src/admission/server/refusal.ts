import type { IncomingMessage, ServerResponse } from "node:http";
import { type HttpResponse, textResponse } from "../http/http-response.ts";

const NOT_JSON = textResponse(415, "the content type must be application/json");
const ENCODED = textResponse(415, "content encodings are not supported: send uncompressed JSON");
const NOT_POST = textResponse(405, "method not allowed: use POST");

/** After this long without a byte a refused client has stopped sending, on any network that a webhook call survives. */
const LINGER_MS = 1_000;

/** Why a request is refused by its method and headers alone. */
export function refusedByHead({ method, headers }: IncomingMessage): HttpResponse | undefined {
  if (method !== "POST") return NOT_POST;
  const type = headers["content-type"];
  if (type !== "application/json" && !/^application\/json\s*(;|$)/i.test(type ?? "")) return NOT_JSON;
  const encoding = headers["content-encoding"];
  return encoding === undefined || encoding === "identity" ? undefined : ENCODED;
}

/**
 * Responds to a request without reading its body, and closes the connection. Not immediately: a client that is still
 * sending when the connection closes sees a reset, and may never read the response. While the client sends, within a
 * request's time limit, the body is discarded.
 */
export function sendAndClose(
  request: IncomingMessage,
  response: ServerResponse,
  { status, type, body, allow = "POST" }: HttpResponse,
): void {
  response.shouldKeepAlive = false;
  if (status === 405) response.setHeader("Allow", allow);
  response.writeHead(status, { "Content-Type": type, "Content-Length": Buffer.byteLength(body) });
  response.write(body);
  const end = () => {
    clearTimeout(timer);
    if (!response.destroyed) response.end();
  };
  const timer = setTimeout(end, LINGER_MS);
  request.on("data", () => timer.refresh());
  request.once("end", end);
  request.once("close", end);
}
