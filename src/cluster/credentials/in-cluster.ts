import { readFile } from "node:fs/promises";
import { Agent } from "node:https";
import { isIPv6 } from "node:net";
import { join } from "node:path";
import { type Access, CONNECTION, type Credentials, closeIdleSockets } from "./credentials.ts";
import { readToken } from "./token-file.ts";

/** Where a kubelet mounts a pod's own. */
const MOUNT = "/var/run/secrets/kubernetes.io/serviceaccount";

/** Names another folder: a pod may mount a token of its own, for another audience or a shorter life. */
const FOLDER_VARIABLE = "USHER_SERVICE_ACCOUNT";

/** A kubelet renews a token after 80 % of its life, which is ten minutes at the least: a minute is early enough by far. */
const LOOK_AGAIN_MS = 60_000;

export interface InClusterOptions {
  /** @default what the variable USHER_SERVICE_ACCOUNT names, else where a kubelet mounts them */
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

/** A pod's own service account: three mounted files and two variables. The files change while we run. */
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
    access: async (): Promise<Access> => {
      // The old ones may well be good still when the files can't be read just now; the server will say.
      if (now() - readAt >= LOOK_AGAIN_MS) await renew().catch(() => undefined);
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
      "not in a pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set; give a kubeconfig",
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
