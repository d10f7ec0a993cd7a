import { expect, test } from "vitest";
import { startAdmission } from "../../src/admission/admission-server.ts";
import { allow } from "../../src/core/decision/decision.ts";
import { at } from "../../src/core/json.ts";
import { type Log, SILENT } from "../../src/core/log.ts";
import { eventually } from "../cluster/access/wait.ts";
import { describeCluster, testNamespace } from "../cluster/describe.ts";
import { get, testModule, testSource } from "../support/admission/example-cluster.ts";

const PODS = 40;

describeCluster("requests of a real API server", (cluster) => {
  const namespace = testNamespace(cluster);

  test("are answered, small or large, sequential and concurrent", async () => {
    const problems: string[] = [];
    const report = (_: object, message: string) => void problems.push(message);
    const log: Log = { ...SILENT, warn: report, error: report };
    let seen = 0;
    const count = testModule({
      count: {
        phase: "mutate",
        judge: ({ draft }) => {
          seen++;
          draft.set(["metadata", "labels", "seen"], "yes", undefined);
          return allow();
        },
      },
    });
    const server = await startAdmission({ source: testSource({}, count), log, port: 0, opsPort: 0 });
    const name = `requests-${namespace()}`;
    const pods = `/api/v1/namespaces/${namespace()}/pods?dryRun=All`;
    const create = (i: number, bytes = 0) =>
      cluster().call("POST", pods, {
        metadata: { name: `p-${i}`, annotations: { padding: "ü".repeat(bytes / 2) } },
        spec: { containers: [{ name: "web", image: "web:1" }] },
      });
    try {
      await cluster().apply({
        apiVersion: "admissionregistration.k8s.io/v1",
        kind: "MutatingWebhookConfiguration",
        metadata: { name },
        webhooks: [
          {
            name: "requests.usher.dev",
            admissionReviewVersions: ["v1"],
            sideEffects: "None",
            clientConfig: {
              url: `${server.webhookAddress.url}/mutate/count`,
              caBundle: Buffer.from(server.ca ?? "").toString("base64"),
            },
            rules: [{ apiGroups: [""], apiVersions: ["v1"], resources: ["pods"], operations: ["CREATE"] }],
            namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": namespace() } },
          },
        ],
      });
      await eventually("the webhook to be called", async () => {
        await create(0);
        return seen > 0;
      });
      const before = seen;
      for (let i = 0; i < PODS / 2; i++) await create(i);
      // The API server's buffer has 4 KiB and a TLS record 16 KiB: these bodies arrive in pieces.
      const sizes = [3_000, 5_000, 15_000, 40_000, 200_000];
      const many = Array.from({ length: PODS / 2 }, (_, i) => create(i, sizes[i % sizes.length]));
      for (const pod of await Promise.all(many)) expect(at(pod, "metadata", "labels", "seen")).toBe("yes");
      expect(seen - before).toBe(PODS);
      expect(problems).toEqual([]);
      const metrics = await get(`${server.opsAddress.url}/metrics`);
      expect(metrics.body).toContain(`usher_requests_total{phase="mutate",code="200"} ${seen}\n`);
    } finally {
      await cluster().kubectl(["delete", "mutatingwebhookconfiguration", name]);
      await server.close();
    }
  });
});
