import type { Agent } from "node:http";

/** How to connect and what to say who we are. */
export interface Access {
  /** Of `node:http` or `node:https`, as the server's address says. */
  readonly agent: Agent;
  readonly headers: Readonly<Record<string, string>>;
}

/** Who we are to one API server. */
export interface Credentials {
  /** `https://10.0.0.1:6443`; may have a path, as behind Rancher. */
  readonly server: string;
  /** The namespace that they belong to, where they say so. */
  readonly namespace: string | undefined;
  /** Cheap enough to ask before each request; what changes with time is looked at again when it is due. */
  readonly access: () => Promise<Access>;
  /** The server refused them, or its certificate: look again now. True where something is different from before. */
  readonly renew: () => Promise<boolean>;
  readonly close: () => void;
}

/**
 * The API server closes a connection that was idle for 90 s. We give up ours before that, so that no request is sent into a
 * connection that is just being closed.
 */
const IDLE_MS = 60_000;

/** A dead peer behind a silent network is found by TCP itself, between requests too. */
const KEEP_ALIVE_MS = 30_000;

/** What every connection of ours has. */
export const CONNECTION = {
  keepAlive: true,
  keepAliveMsecs: KEEP_ALIVE_MS,
  timeout: IDLE_MS,
  // The last used first, so that what is too many becomes idle and goes.
  scheduling: "lifo",
} as const;

/** Lets go of connections that nobody uses. Those in use are left: a watch of an hour needs no new certificate. */
export function closeIdleSockets(agent: Agent): void {
  for (const sockets of Object.values(agent.freeSockets)) {
    for (const socket of sockets ?? []) socket.destroy();
  }
}
