// The environment of a usher pod: variables and the files of its service account, so that usher can run outside of a
// pod as it does within.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { stringAt } from "../../src/core/json.ts";
import type { ClusterAccess } from "../../test/cluster/access/access.ts";

const NAMESPACE = "usher-system";

/** The variables, as `env` takes them. */
export async function inClusterEnvironment(
  cluster: ClusterAccess,
  scratch: string,
): Promise<readonly string[]> {
  const account = `/api/v1/namespaces/${NAMESPACE}/serviceaccounts/usher/token`;
  const body = { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec: {} };
  const token = stringAt(await cluster.call("POST", account, body), "status", "token") ?? "";
  const folder = join(scratch, "service-account");
  mkdirSync(folder, { recursive: true });
  const files = { token, "ca.crt": cluster.info.ca.certificate, namespace: NAMESPACE };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  const { hostname, port } = new URL(cluster.server);
  return [
    `KUBERNETES_SERVICE_HOST=${hostname}`,
    `KUBERNETES_SERVICE_PORT=${port}`,
    `USHER_SERVICE_ACCOUNT=${folder}`,
  ];
}
