// The bare server as a webhook of the cluster: the API server's own cost for any webhook that patches a pod.
import { join } from "node:path";
import type { JsonObject } from "../../src/core/json.ts";
import type { ClusterAccess } from "../../test/cluster/access/access.ts";
import { eventually } from "../../test/cluster/access/wait.ts";
import { type Child, startServer } from "../servers/child-process.ts";
import { ARMS, isPlaced, podFor, podsPath, SAME_PATCH } from "./pod.ts";

/** Starts it, and resolves when the API server calls it. */
export async function registerBareWebhook(cluster: ClusterAccess): Promise<Child> {
  const server = await startServer(process.execPath, [
    join(import.meta.dirname, "..", "servers", "bare-server.ts"),
    JSON.stringify(SAME_PATCH),
  ]);
  const arm = ARMS[1];
  await cluster.apply(configuration(server, arm.namespace));
  await eventually("the bare webhook asked", async () =>
    isPlaced(await cluster.call("POST", `${podsPath(arm)}?dryRun=All`, podFor(0))),
  );
  return server;
}

/**
 * Like usher's own, except for the namespace and the address: an address that is not a Service is dialled directly,
 * past the harness's proxy.
 */
function configuration({ ready }: Child, namespace: string): JsonObject {
  return {
    apiVersion: "admissionregistration.k8s.io/v1",
    kind: "MutatingWebhookConfiguration",
    metadata: { name: "bench-bare" },
    webhooks: [
      {
        name: "bare.bench.usher.dev",
        admissionReviewVersions: ["v1"],
        sideEffects: "None",
        failurePolicy: "Fail",
        timeoutSeconds: 2,
        reinvocationPolicy: "IfNeeded",
        clientConfig: { url: ready.webhook, caBundle: Buffer.from(ready.ca).toString("base64") },
        rules: [{ apiGroups: [""], apiVersions: ["v1"], resources: ["pods"], operations: ["CREATE"] }],
        namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": namespace } },
      },
    ],
  };
}
