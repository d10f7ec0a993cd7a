import type { IncomingMessage } from "node:http";
import type { Json } from "../../core/json.ts";
import { type ApiResponse, ConnectionError } from "./client.ts";
import { linesOf } from "./lines.ts";

/** The response does not fit into the client's limit. */
export class TooLargeError extends ConnectionError {}

/**
 * Reads a response to its end. Throws a TooLargeError beyond the limit. The body is parsed on first access: a caller
 * may have no memory for it.
 */
export async function readResponse(
  response: IncomingMessage,
  limitBytes: number,
  what: string,
): Promise<ApiResponse> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > limitBytes) {
      response.destroy();
      throw new TooLargeError(`${what}: response is larger than ${limitBytes} bytes`);
    }
    chunks.push(chunk);
  }
  const text = Buffer.concat(chunks, length).toString("utf8");
  let body: { readonly value: Json | undefined } | undefined;
  return {
    status: statusOf(response),
    headers: headersOf(response),
    get body() {
      body ??= { value: parsed(response, text) };
      return body.value;
    },
    text,
  };
}

/** The lines of a stream. A stream that the client closed just ends; a broken one is a ConnectionError. */
export async function* readLines(
  response: IncomingMessage,
  isClosed: () => boolean,
  what: string,
): AsyncGenerator<string> {
  try {
    yield* linesOf(response as AsyncIterable<Buffer>);
  } catch (error) {
    if (!isClosed()) throw asConnectionError(error, what);
  } finally {
    response.destroy();
  }
}

export function statusOf(response: IncomingMessage): number {
  return response.statusCode ?? 0;
}

export function headersOf({ headers }: IncomingMessage): Record<string, string> {
  const flat: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined) flat[name] = Array.isArray(value) ? value.join(", ") : value;
  }
  return flat;
}

export function asConnectionError(error: unknown, what: string): ConnectionError {
  if (error instanceof TooLargeError) return error;
  const why = error instanceof Error ? error.message : String(error);
  return new ConnectionError(`${what}: ${why || errorCode(error)}`, { cause: error });
}

export function errorCode(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "";
}

function parsed(response: IncomingMessage, text: string): Json | undefined {
  if (!(response.headers["content-type"] ?? "").includes("json")) return undefined;
  try {
    return JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
}
