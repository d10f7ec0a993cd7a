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

/** Whether it is the cluster of the pod that this process runs in, and not one that somebody names. */
export function isOwnCluster({ kubeconfig, context }: ApiServerOptions): boolean {
  const named = kubeconfig ?? context ?? process.env["KUBECONFIG"];
  return named === undefined && isInCluster();
}

/** The API server that a kubeconfig leads to, or a pod's own. */
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
      throw new CallError(`--kubeconfig ${file ?? ""}: there is no such file`);
    }
    throw new CallError(error instanceof Error ? error.message : String(error));
  }
}

const NO_FAULTS = [StatusError, NotReadyError, ConnectionError, DiscoveryError];

/** Works with an API server. What it refuses, or that it can't be reached, is no fault of usher's, and told as a sentence. */
export async function withApiServer<T>(
  options: ApiServerOptions,
  work: (client: Client) => Promise<T>,
): Promise<T> {
  const client = await apiServer(options);
  try {
    return await work(client);
  } catch (error) {
    if (NO_FAULTS.some((kind) => error instanceof kind))
      throw new CallError((error as Error).message, EXIT.failed);
    throw error;
  } finally {
    client.close();
  }
}
