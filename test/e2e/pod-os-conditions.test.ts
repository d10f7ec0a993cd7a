// The API server compiles the conditions of hooks that only some settings register.
import { expect, test } from "vitest";
import type { JsonObject } from "../../src/core/json.ts";
import { webhookConfigurations } from "../../src/core/registration/webhooks.ts";
import { podOSWith } from "../builders/pod-os.ts";
import { describeCluster } from "../cluster/describe.ts";

const API = "/apis/admissionregistration.k8s.io/v1";

describeCluster("conditions of pod-os", (cluster) => {
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
});
