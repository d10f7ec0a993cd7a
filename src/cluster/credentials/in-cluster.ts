import { readFile } from "node:fs/promises";
import { Agent } from "node:https";
import { isIPv6 } from "node:net";
import { join } from "node:path";
import {
  type ClusterAccess,
  CONNECTION,
  type Credentials,
  closeIdleSockets,
  readToken,
} from "./credentials.ts";

/** Where the kubelet mounts the service account. */
const MOUNT = "/var/run/secrets/kubernetes.io/serviceaccount";

/** Names another folder, for a projected token with another audience or lifetime. */
const FOLDER_VARIABLE = "USHER_SERVICE_ACCOUNT";

/** The kubelet renews tokens at 80 % of their lifetime, which is ten minutes at least: a minute is early enough. */
const RELOAD_EVERY_MS = 60_000;

export interface InClusterOptions {
  /** @default $USHER_SERVICE_ACCOUNT, else the kubelet's mount */
  readonly folder?: string;
  /** @default the process's */
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly now?: () => number;
}

interface Files {
  readonly token: string;
  readonly ca: string;
}

/** True in a pod. */
export function isInCluster(env: Readonly<Record<string, string | undefined>> = process.env): boolean {
  return env["KUBERNETES_SERVICE_HOST"] !== undefined && env["KUBERNETES_SERVICE_PORT"] !== undefined;
}

/** The pod's service account: three mounted files, which are rotated, and two environment variables. */
export async function inClusterCredentials(options: InClusterOptions = {}): Promise<Credentials> {
  const { env = process.env, now = Date.now } = options;
  const folder = options.folder ?? env[FOLDER_VARIABLE] ?? MOUNT;
  const server = serverOf(env);
  let files = await read(folder);
  let readAt = now();
  let agent = agentFor(files.ca);
  const namespace = await readFile(join(folder, "namespace"), "utf8").catch(() => undefined);

  const renew = async (): Promise<boolean> => {
    const before = files;
    files = await read(folder);
    readAt = now();
    if (files.ca !== before.ca) {
      closeIdleSockets(agent);
      agent = agentFor(files.ca);
    }
    return files.ca !== before.ca || files.token !== before.token;
  };

  return {
    server,
    namespace: namespace?.trim(),
    renew,
    access: async (): Promise<ClusterAccess> => {
      // If the files can't be read, the old credentials may still be valid; the API server decides.
      if (now() - readAt >= RELOAD_EVERY_MS) await renew().catch(() => undefined);
      return { agent, headers: { authorization: `Bearer ${files.token}` } };
    },
    close: () => agent.destroy(),
  };
}

function serverOf(env: Readonly<Record<string, string | undefined>>): string {
  const host = env["KUBERNETES_SERVICE_HOST"];
  const port = env["KUBERNETES_SERVICE_PORT"];
  if (host === undefined || port === undefined) {
    throw new Error(
      "not running in a pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set; use --kubeconfig",
    );
  }
  return `https://${isIPv6(host) ? `[${host}]` : host}:${port}`;
}

async function read(folder: string): Promise<Files> {
  const [token, ca] = await Promise.all([
    readToken(join(folder, "token")),
    readFile(join(folder, "ca.crt"), "utf8"),
  ]);
  return { token, ca };
}

function agentFor(ca: string): Agent {
  return new Agent({ ...CONNECTION, ca });
}
