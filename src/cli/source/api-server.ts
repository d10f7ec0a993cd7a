import { StatusError } from "../../cluster/client/api-response.ts";
import { type Client, ConnectionError } from "../../cluster/client/client.ts";
import { DiscoveryError } from "../../cluster/client/discovery.ts";
import { createClient } from "../../cluster/client/https-client.ts";
import { inClusterCredentials, isInCluster } from "../../cluster/credentials/in-cluster.ts";
import { kubeconfigCredentials } from "../../cluster/credentials/kubeconfig.ts";
import { NoKubeconfigError } from "../../cluster/credentials/kubeconfig-file.ts";
import { stringAt } from "../../core/json.ts";
import { NotReadyError } from "../../operator/install/install.ts";
import { CallError, EXIT, NoClusterError } from "../exit.ts";
import { watchResponses } from "./watched-client.ts";

export interface ApiServerOptions {
  readonly kubeconfig?: string;
  readonly context?: string;
  /** Seconds for one request. */
  readonly requestTimeout?: number;
}

/** Half of the API server's own maximum for a request: a user waits. */
const REQUEST_TIMEOUT_SECONDS = 30;

export function timeoutOf({ requestTimeout = REQUEST_TIMEOUT_SECONDS }: ApiServerOptions): number {
  return requestTimeout * 1_000;
}

/** Whether the cluster is that of the pod that this process runs in: no flag or variable names another. */
export function isOwnCluster({ kubeconfig, context }: ApiServerOptions): boolean {
  const named = kubeconfig ?? context ?? process.env["KUBECONFIG"];
  return named === undefined && isInCluster();
}

/** The API server of a kubeconfig, or of the pod that this process runs in. */
export async function apiServer(options: ApiServerOptions): Promise<Client> {
  const { kubeconfig: file, context } = options;
  const timeoutMs = timeoutOf(options);
  try {
    if (isOwnCluster(options)) return createClient(await inClusterCredentials(), { timeoutMs });
    const credentials = await kubeconfigCredentials({
      ...(file === undefined ? {} : { file }),
      ...(context === undefined ? {} : { context }),
    });
    return withClearImpersonation(createClient(credentials, { timeoutMs }));
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") {
      throw new CallError(`--kubeconfig ${file ?? ""}: no such file`);
    }
    if (error instanceof NoKubeconfigError) throw new NoClusterError(error.message);
    throw new CallError(error instanceof Error ? error.message : String(error));
  }
}

/** The kubeconfig has `as`, and the API server does not let its user act as another. */
class ImpersonationError extends Error {}

/** The verbs of both ways to authorise impersonation: `impersonate`, and those of constrained impersonation since 1.36. */
const REFUSED_IMPERSONATION = / cannot impersonate(-on)?[:\w-]* (resource|path) /;

/** Every request is refused then: not because of its own resource, so a message about that would mislead. */
function withClearImpersonation(client: Client): Client {
  const request: Client["request"] = async (method, path, options) => {
    const response = await client.request(method, path, options);
    const message = response.status === 403 ? (stringAt(response.body, "message") ?? "") : "";
    if (!REFUSED_IMPERSONATION.test(message)) return response;
    throw new ImpersonationError(
      `the kubeconfig's user has "as", and the API server refuses to act as another user: ${message}. Use a context without "as", or ask an administrator for the right to impersonate`,
    );
  };
  return { ...client, request };
}

/** Errors of the cluster, not of usher: printed without a stack. */
const CLUSTER_ERRORS = [ImpersonationError, StatusError, NotReadyError, ConnectionError, DiscoveryError];

/** An error of the cluster as a `CallError`, with its message; others are unchanged. */
export function clusterError(error: unknown, { server }: Client): unknown {
  if (error instanceof ConnectionError)
    return new CallError(`${server} did not respond: ${error.message}`, EXIT.failed);
  const known = CLUSTER_ERRORS.some((kind) => error instanceof kind);
  return known ? new CallError((error as Error).message, EXIT.failed) : error;
}

/** Calls `work` with a client. `note` is called if the API server does not respond. Errors of the cluster become a `CallError`. */
export async function withApiServer<T>(
  options: ApiServerOptions,
  note: (text: string) => void,
  work: (client: Client) => Promise<T>,
): Promise<T> {
  // Each request has its timeout, and retries end.
  const watch = { timeoutMs: timeoutOf(options), waiting: note, giveUp: () => undefined };
  const client = watchResponses(await apiServer(options), watch);
  try {
    return await work(client);
  } catch (error) {
    throw clusterError(error, client);
  } finally {
    client.close();
  }
}
