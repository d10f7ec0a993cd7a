import type { Json } from "../../core/json.ts";

/** The field manager of usher. */
export const FIELD_MANAGER = "usher";

/** A response of the API server, including errors: only a broken connection rejects. */
export interface ApiResponse {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** `undefined` if the body is not JSON; `text` has it. Parsed at first use. */
  readonly body: Json | undefined;
  readonly text: string;
}

export interface RequestOptions {
  readonly body?: Json;
  /** @default application/json */
  readonly contentType?:
    | "application/json"
    | "application/json-patch+json"
    | "application/merge-patch+json"
    | "application/apply-patch+yaml";
  readonly signal?: AbortSignal;
  /** @default 30 s */
  readonly timeoutMs?: number;
  /** A longer response is not read to its end: the request rejects with a TooLargeError. @default the largest object */
  readonly limitBytes?: number;
  /** @default application/json */
  readonly accept?: string;
}

/** A stream of lines, each a JSON text, as in watches and streaming lists. Ends when the server ends it. */
export interface Stream {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly lines: AsyncIterable<string>;
  /** Closes the connection; the lines end. */
  readonly close: () => void;
}

/** Requests to one API server. */
export interface Client {
  /** The address, for messages: `https://10.0.0.1:6443` */
  readonly server: string;
  readonly request: (method: string, path: string, options?: RequestOptions) => Promise<ApiResponse>;
  /** A response with status 400 or above has its body as the only line. */
  readonly stream: (path: string, options?: { readonly signal?: AbortSignal }) => Promise<Stream>;
  /** Closes idle connections, after another connection was found dead. */
  readonly closeIdleConnections?: () => void;
  readonly close: () => void;
}

/** The connection failed or broke: whether the server processed the request is unknown. */
export class ConnectionError extends Error {}
