import { StatusError } from "../../cluster/client/api-response.ts";
import { type Client, ConnectionError } from "../../cluster/client/client.ts";
import { DiscoveryError } from "../../cluster/client/discovery.ts";
import { createClient } from "../../cluster/client/https-client.ts";
import { inClusterCredentials, isInCluster } from "../../cluster/credentials/in-cluster.ts";
import { kubeconfigCredentials } from "../../cluster/credentials/kubeconfig.ts";
import { NotReadyError } from "../../operator/install/install.ts";
import { CallError, EXIT } from "../exit.ts";

export interface ApiServerOptions {
  readonly kubeconfig?: string;
  readonly context?: string;
}

/** Whether the cluster is that of the pod that this process runs in: no flag or variable names another. */
export function isOwnCluster({ kubeconfig, context }: ApiServerOptions): boolean {
  const named = kubeconfig ?? context ?? process.env["KUBECONFIG"];
  return named === undefined && isInCluster();
}

/** The API server of a kubeconfig, or of the pod that this process runs in. */
export async function apiServer(options: ApiServerOptions): Promise<Client> {
  const { kubeconfig: file, context } = options;
  try {
    if (isOwnCluster(options)) return createClient(await inClusterCredentials());
    const credentials = await kubeconfigCredentials({
      ...(file === undefined ? {} : { file }),
      ...(context === undefined ? {} : { context }),
    });
    return createClient(credentials);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") {
      throw new CallError(`--kubeconfig ${file ?? ""}: no such file`);
    }
    throw new CallError(error instanceof Error ? error.message : String(error));
  }
}

/** Errors of the cluster, not of usher: printed without a stack. */
const CLUSTER_ERRORS = [StatusError, NotReadyError, ConnectionError, DiscoveryError];

/** Calls `work` with a client. Errors of the cluster become the message of a `CallError`. */
export async function withApiServer<T>(
  options: ApiServerOptions,
  work: (client: Client) => Promise<T>,
): Promise<T> {
  const client = await apiServer(options);
  try {
    return await work(client);
  } catch (error) {
    if (CLUSTER_ERRORS.some((kind) => error instanceof kind))
      throw new CallError((error as Error).message, EXIT.failed);
    throw error;
  } finally {
    client.close();
  }
}
