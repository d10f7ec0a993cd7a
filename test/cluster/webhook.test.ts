import { beforeAll, expect, test } from "vitest";
import { listAt, stringAt } from "../../src/core/json.ts";
import { eventually } from "./access/wait.ts";
import { describeCluster, testNamespace } from "./describe.ts";
import { deployment, fixture, service, servingSecret } from "./fixtures/manifests.ts";

describeCluster("a webhook by Service reference", (cluster) => {
  const namespace = testNamespace(cluster);
  const run = (...args: readonly string[]) => cluster().kubectl(["-n", namespace(), ...args]);
  const forbidden = (name: string): string =>
    JSON.stringify({
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name, namespace: namespace(), labels: { forbidden: "" } },
    });
  const refusal = async (name: string): Promise<string> =>
    (await cluster().kubectl(["create", "-f", "-"], { input: forbidden(name) })).stderr;

  beforeAll(async () => {
    await cluster().createNode("webhook-node");
    const { secret, caBundle } = await servingSecret(namespace(), "gate");
    await cluster().apply(
      secret,
      service(namespace(), "gate"),
      deployment(namespace(), "gate", [fixture("webhook.mjs")], 2),
      {
        apiVersion: "admissionregistration.k8s.io/v1",
        kind: "ValidatingWebhookConfiguration",
        metadata: { name: `gate-${namespace()}` },
        webhooks: [
          {
            name: "gate.usher.dev",
            clientConfig: { service: { name: "gate", namespace: namespace(), path: "/review" }, caBundle },
            rules: [
              { apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["configmaps"] },
            ],
            // Only this file's objects: other files share the cluster.
            namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": namespace() } },
            admissionReviewVersions: ["v1"],
            sideEffects: "None",
            timeoutSeconds: 5,
          },
        ],
      },
    );
    const rollout = await run("rollout", "status", "deployment/gate", "--timeout=60s");
    expect(rollout.stderr + rollout.stdout).toContain("successfully rolled out");
    return async () => {
      await cluster().kubectl(["delete", "validatingwebhookconfiguration", `gate-${namespace()}`]);
    };
  });

  test("its pods are Running and Ready, each with its own address, reported by their node", async () => {
    const pods = listAt(
      await cluster().call("GET", `/api/v1/namespaces/${namespace()}/pods?labelSelector=app%3Dgate`),
      "items",
    );
    expect(pods.map((pod) => stringAt(pod, "status", "phase"))).toEqual(["Running", "Running"]);
    expect(new Set(pods.map((pod) => stringAt(pod, "status", "podIP"))).size).toBe(2);
    const [name] = pods.map((pod) => stringAt(pod, "metadata", "name"));
    const writers = cluster()
      .auditLog()
      .filter(({ objectRef }) => objectRef?.name === name && objectRef?.subresource === "status")
      .map(({ user }) => user.username);
    expect(writers.length).toBeGreaterThan(0);
    expect(new Set(writers.map((writer) => writer.replace(/:[^:]*$/, "")))).toEqual(new Set(["system:node"]));
  });

  test("the API server reaches it through the egress proxy, and kubectl shows its message", async () => {
    const seen = await eventually("the refusal", async () => {
      const text = await refusal("one");
      return text.includes("says gate-") && text;
    });
    expect(seen).toMatch(
      /admission webhook "gate\.usher\.dev" denied the request: not with this label, says gate-/,
    );
    expect((await run("create", "configmap", "allowed")).code).toBe(0);
  });

  test("calls are spread over the ready pods", async () => {
    const speakers = new Set<string>();
    await eventually("both pods to answer", async () => {
      speakers.add(/says (gate-\S+)/.exec(await refusal("two"))?.[1] ?? "");
      return speakers.size === 2;
    });
    for (const name of speakers)
      expect(cluster().podLog(namespace(), name)).toContain("review of two by usher-test-admin");
  });

  test("a deleted pod gets SIGTERM and goes, and the other one keeps answering", async () => {
    const before = (await run("get", "pods", "-l", "app=gate", "-o", "name")).stdout.trim().split("\n");
    const name = before[0]?.replace("pod/", "") ?? "";
    expect((await run("delete", "pod", name)).code).toBe(0);
    expect(cluster().podLog(namespace(), name)).toContain("asked to end");
    expect(await refusal("three")).toContain("says gate-");
    expect((await run("rollout", "status", "deployment/gate", "--timeout=60s")).code).toBe(0);
  });

  test("without a ready pod the call fails, and so does the request", async () => {
    expect((await run("scale", "deployment/gate", "--replicas=0")).code).toBe(0);
    const seen = await eventually("no ready pod", async () => {
      const text = await refusal("four");
      return text.includes("failed calling webhook") && text;
    });
    expect(seen).toContain('failed calling webhook "gate.usher.dev"');
    expect((await run("scale", "deployment/gate", "--replicas=1")).code).toBe(0);
    await eventually("an answer again", async () => (await refusal("five")).includes("denied the request"));
  });
});
