import { readFile } from "node:fs/promises";
import type { Agent } from "node:http";

/** How to connect and authenticate. */
export interface ClusterAccess {
  /** Of `node:http` or `node:https`, by the server's address. */
  readonly agent: Agent;
  readonly headers: Readonly<Record<string, string>>;
}

/** Credentials for one API server. */
export interface Credentials {
  /** `https://10.0.0.1:6443`; may have a path, as behind Rancher. */
  readonly server: string;
  /** Their default namespace, if they have one. */
  readonly namespace: string | undefined;
  /** Cheap enough to call before each request; reloads credentials that may have expired. */
  readonly access: () => Promise<ClusterAccess>;
  /** Reloads after a 401 or a certificate error. True if anything changed. */
  readonly renew: () => Promise<boolean>;
  readonly close: () => void;
}

/** The API server closes connections after 90 s of idling. Closing earlier avoids sending a request into a closing connection. */
const IDLE_MS = 60_000;

/** TCP detects a dead peer between requests too. */
const KEEP_ALIVE_MS = 30_000;

/** Options of every connection to an API server. */
export const CONNECTION = {
  keepAlive: true,
  keepAliveMsecs: KEEP_ALIVE_MS,
  timeout: IDLE_MS,
  // Reuses the last used connection first, so that surplus ones become idle and close.
  scheduling: "lifo",
} as const;

/** Closes idle connections. Those in use stay: a running watch needs no new certificate. */
export function closeIdleSockets(agent: Agent): void {
  for (const sockets of Object.values(agent.freeSockets)) {
    for (const socket of sockets ?? []) socket.destroy();
  }
}

/** The token in a file. Rejects an empty file, which may be half written: an anonymous request would be worse than a late one. */
export async function readToken(file: string): Promise<string> {
  const token = (await readFile(file, "utf8")).trim();
  if (token === "") throw new Error(`token file ${file} is empty`);
  return token;
}

/**
 * A URL for messages: without user, password and query. Works on the text, because messages often quote an invalid URL;
 * removes everything before the last `@`.
 */
export function redactedUrl(url: string): string {
  const [, scheme = "", rest = ""] = /^([a-z][a-z0-9+.-]*:\/\/)?(?:.*@)?([^?#]*)/is.exec(url) ?? [];
  return scheme + rest;
}
