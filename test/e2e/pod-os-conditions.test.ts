// The API server compiles the matchConditions of hooks that only some settings register.
import { expect, onTestFinished, test } from "vitest";
import type { JsonObject } from "../../src/core/json.ts";
import { webhookConfigurations } from "../../src/core/registration/webhooks.ts";
import { podOSWith } from "../builders/pod-os.ts";
import { eventually } from "../cluster/access/wait.ts";
import { describeCluster, testNamespace } from "../cluster/describe.ts";

const API = "/apis/admissionregistration.k8s.io/v1";

describeCluster("conditions of pod-os", (cluster) => {
  const namespace = testNamespace(cluster);

  test.each<[string, JsonObject]>([
    ["defaults", {}],
    ["write", { write: true }],
    ["harden", { harden: ["shop"] }],
  ])("%s", async (_name, settings) => {
    const { hooks, installation } = podOSWith([], settings);
    const endpoint = { url: "https://127.0.0.1:1" };
    const { mutating, validating } = webhookConfigurations(hooks, installation, { endpoint });
    for (const [resource, object] of [
      ["mutatingwebhookconfigurations", mutating],
      ["validatingwebhookconfigurations", validating],
    ] as const) {
      const { status, body } = await cluster().request("POST", `${API}/${resource}?dryRun=All`, object);
      expect(status, JSON.stringify(body)).toBe(201);
    }
  });

  test("by default usher is called for templates that mention an OS, and for no others", async () => {
    const { hooks, installation } = podOSWith([], {});
    const mine = hooks
      .filter(({ name }) => name === "pod-os")
      .map((hook) => ({ ...hook, failure: "closed" as const, namespaces: { only: [namespace()] } }));
    const { validating } = webhookConfigurations(mine, installation, {
      endpoint: { url: "https://127.0.0.1:1" },
    });
    const name = `pod-os-${namespace()}`;
    await cluster().call("POST", `${API}/validatingwebhookconfigurations`, {
      ...validating,
      metadata: { name },
    });
    onTestFinished(async () => {
      await cluster().request("DELETE", `${API}/validatingwebhookconfigurations/${name}`);
    });
    const created = async (kind: string, spec: JsonObject): Promise<boolean> => {
      const template = {
        metadata: { labels: { app: "a" } },
        spec: { containers: [{ name: "c", image: "one" }], ...spec },
      };
      const [path, body] =
        kind === "CronJob"
          ? ["batch/v1", { schedule: "@daily", jobTemplate: { spec: { template: withRestart(template) } } }]
          : ["apps/v1", { selector: { matchLabels: { app: "a" } }, template }];
      const collection = `/apis/${path}/namespaces/${namespace()}/${kind.toLowerCase()}s?dryRun=All`;
      const { status } = await cluster().request("POST", collection, {
        metadata: { name: "new" },
        spec: body,
      });
      return status === 201;
    };
    const OS = { nodeSelector: { "kubernetes.io/os": "windows" } };
    await eventually("the hook to be in force", async () => !(await created("Deployment", OS)));
    expect(await created("Deployment", {})).toBe(true);
    expect(await created("Deployment", { nodeSelector: { pool: "a" } })).toBe(true);
    expect(await created("StatefulSet", { os: { name: "linux" } })).toBe(false);
    // Its template is at another path, so usher is always called for it.
    expect(await created("CronJob", {})).toBe(false);
  });
});

function withRestart(template: { readonly spec: JsonObject }): JsonObject {
  return { ...template, spec: { ...template.spec, restartPolicy: "Never" } };
}
