// Writes the status of nodes with the least work that the API server allows: it shares a core with the control plane,
// and its CPU time is missing for writes.
import { Agent, type RequestOptions, request } from "node:https";
import { type JsonObject, stringAt } from "../../src/core/json.ts";
import type { ClusterAccess } from "../../test/cluster/access/access.ts";

const NAMESPACE = "kube-system";
const NAME = "bench-kubelets";
const TOKENS = `/api/v1/namespaces/${NAMESPACE}/serviceaccounts/${NAME}/token`;
/** The response is not read, so it is requested in the form that costs least to write. */
const LEAST = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

export type WriteStatus = (node: string, object: JsonObject) => Promise<void>;

/** Writes over this many open connections. */
export async function statusWriter(cluster: ClusterAccess, connections: number): Promise<WriteStatus> {
  const token = await tokenOf(cluster);
  const agent = new Agent({ keepAlive: true, maxSockets: connections, ca: cluster.info.ca.certificate });
  const { hostname, port } = new URL(cluster.server);
  const headers = { accept: LEAST, "content-type": "application/json", authorization: `Bearer ${token}` };
  return (node, object) => {
    const path = `/api/v1/nodes/${node}/status`;
    return send({ agent, hostname, port, method: "PUT", path, headers }, JSON.stringify(object));
  };
}

/** With a token, which the API server caches; it verifies a certificate with each request, which is a tenth of a write's cost. */
async function tokenOf(cluster: ClusterAccess): Promise<string> {
  const metadata = { name: NAME };
  await cluster.apply(
    { apiVersion: "v1", kind: "ServiceAccount", metadata: { ...metadata, namespace: NAMESPACE } },
    {
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: "ClusterRoleBinding",
      metadata,
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "system:node" },
      subjects: [{ kind: "ServiceAccount", namespace: NAMESPACE, name: NAME }],
    },
  );
  const asked = { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec: {} };
  const answer = await cluster.call("POST", TOKENS, asked);
  return stringAt(answer, "status", "token") ?? "";
}

function send(options: RequestOptions, body: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const sent = request(options, (response) => {
      response.resume();
      response.once("error", reject);
      response.once("end", () => {
        if (response.statusCode === 200) resolve();
        else reject(new Error(`${options.method} ${options.path}: ${response.statusCode}`));
      });
    });
    sent.once("error", reject);
    sent.setHeader("content-length", Buffer.byteLength(body));
    sent.end(body);
  });
}
