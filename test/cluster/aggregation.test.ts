import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { at } from "../../src/core/json.ts";
import { eventually } from "./access/wait.ts";
import { describeCluster, testNamespace } from "./describe.ts";
import { deployment, fixture, service, servingSecret } from "./fixtures/manifests.ts";

describeCluster("an aggregated API server", (cluster) => {
  const namespace = testNamespace(cluster);

  test("is called through the front proxy, which passes the user's identity", async () => {
    await cluster().createNode("aggregation-node");
    const { secret, caBundle } = await servingSecret(namespace(), "seats");
    const frontProxyCa = readFileSync(join(cluster().info.folder, "front-proxy-ca.crt"), "utf8");
    await cluster().apply(
      { ...secret, stringData: { ...(at(secret, "stringData") as object), "front-proxy.crt": frontProxyCa } },
      service(namespace(), "seats"),
      deployment(
        namespace(),
        "seats",
        [fixture("aggregated.mjs"), "--client-ca=/etc/tls/front-proxy.crt"],
        1,
      ),
      {
        apiVersion: "apiregistration.k8s.io/v1",
        kind: "APIService",
        metadata: { name: "v1.seats.usher.dev" },
        spec: {
          group: "seats.usher.dev",
          version: "v1",
          groupPriorityMinimum: 1000,
          versionPriority: 10,
          caBundle,
          service: { namespace: namespace(), name: "seats", port: 443 },
        },
      },
    );
    try {
      const wait = ["wait", "--for=condition=Available", "apiservice/v1.seats.usher.dev", "--timeout=60s"];
      expect((await cluster().kubectl(wait)).stderr).toBe("");
      const path = "/apis/seats.usher.dev/v1/seats";
      const seen = await eventually("an answer", async () => {
        const reply = await cluster().request("GET", path, undefined, {
          user: "carol",
          groups: ["system:masters"],
        });
        return reply.status === 200 && at(reply.body, "seen");
      });
      expect(seen).toMatchObject({ proxy: "front-proxy-client", user: "carol" });
      const refused = await cluster().request("GET", path, undefined, { user: "dave" });
      expect(refused.status).toBe(403);
    } finally {
      await cluster().kubectl(["delete", "apiservice", "v1.seats.usher.dev"]);
    }
  });
});
