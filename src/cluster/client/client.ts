import type { Json } from "../../core/json.ts";

/** What the API server answered. A refusal is an answer: only a broken connection rejects. */
export interface ApiResponse {
  readonly status: number;
  /** In lower case, as Node gives them. */
  readonly headers: Readonly<Record<string, string>>;
  /** `undefined` where the body is no JSON; `text` has it. */
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
}

/** A stream of lines, as a watch or a streaming list sends them, each one JSON text. Ends when the server ends it. */
export interface Stream {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly lines: AsyncIterable<string>;
  /** Cuts it; the lines end. */
  readonly close: () => void;
}

/** The one way to an API server. */
export interface Client {
  /** Where, for messages: `https://10.0.0.1:6443` */
  readonly server: string;
  readonly request: (method: string, path: string, options?: RequestOptions) => Promise<ApiResponse>;
  /** A status of 400 or more is given with its body as the only line. */
  readonly stream: (path: string, options?: { readonly signal?: AbortSignal }) => Promise<Stream>;
  /** Lets go of connections that nobody uses just now: another one was found dead, and these may be as well. */
  readonly closeIdleConnections?: () => void;
  readonly close: () => void;
}

/** The connection broke or never came about: nothing is known of what the server did. */
export class ConnectionError extends Error {}
