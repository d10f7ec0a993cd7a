import { expect, onTestFinished, test } from "vitest";
import { TestApiServer } from "../../../test/support/cluster/api-server.ts";
import { SILENT } from "../../core/log.ts";
import { PublishedWebhooks, webhooksPath } from "./published-webhooks.ts";

const CONFIGURATION = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/usher";
const [FIRST, SECOND, OTHER] = ["a", "b", "c"].map((digit) => digit.repeat(40)) as [string, string, string];

function published() {
  const server = new TestApiServer();
  const apply = (token: string, namespace = "usher-system") =>
    server.put(CONFIGURATION, {
      webhooks: [{ clientConfig: { service: { name: "usher", namespace, path: `/${token}/mutate/a` } } }],
    });
  const webhooks = new PublishedWebhooks({
    client: server.client,
    namespace: "usher-system",
    log: SILENT,
    pollMs: 3_600_000,
  });
  onTestFinished(() => webhooks.stop());
  return { server, apply, webhooks };
}

test("accepts a token that was applied after the last read, and still the previous one", async () => {
  const { apply, webhooks } = published();
  apply(FIRST);
  await webhooks.start();
  expect(webhooks.acceptsToken(FIRST)).toBe(true);
  expect(webhooks.acceptsToken(undefined)).toBe(false);
  apply(SECOND);
  expect(await webhooks.acceptsToken(SECOND)).toBe(true);
  expect(webhooks.acceptsToken(SECOND)).toBe(true);
  expect(webhooks.acceptsToken(FIRST)).toBe(true);
  expect(await webhooks.acceptsToken(OTHER)).toBe(false);
});

test("calls with unknown tokens share a read, and a failed read accepts none", async () => {
  const { server, apply, webhooks } = published();
  apply(FIRST);
  await webhooks.start();
  const before = server.asked.length;
  expect(await Promise.all(Array.from({ length: 50 }, () => webhooks.acceptsToken(OTHER)))).not.toContain(
    true,
  );
  expect(server.asked.length - before).toBe(2);
  server.fault = () => new Error("connection reset");
  expect(await webhooks.acceptsToken(SECOND)).toBe(false);
  expect(webhooks.acceptsToken(FIRST)).toBe(true);
});

test("ignores a token of another Service's entry", async () => {
  const { apply, webhooks } = published();
  apply(FIRST, "elsewhere");
  await webhooks.start();
  expect(await webhooks.acceptsToken(FIRST)).toBe(false);
});

test("an operand's objects are configurable: the bundle of an APIService counts, and entries of its own Service", async () => {
  const server = new TestApiServer();
  const base64 = (text: string) => Buffer.from(text).toString("base64");
  const service = { name: "admission-server", namespace: "operand" };
  const objects = [
    "/apis/apiregistration.k8s.io/v1/apiservices/v1.x",
    webhooksPath("validatingwebhookconfigurations", "x"),
  ];
  const webhooks = new PublishedWebhooks({
    client: server.client,
    namespace: service.namespace,
    service: service.name,
    objects,
    log: SILENT,
  });
  await webhooks.read();
  expect(webhooks.bundles).toEqual([]);
  server.put(objects[0] ?? "", { spec: { service, caBundle: base64("of the APIService") } });
  const kubernetes = { name: "kubernetes", namespace: "default" };
  server.put(objects[1] ?? "", {
    webhooks: [{ clientConfig: { service: kubernetes, caBundle: base64("of the cluster") } }],
  });
  await webhooks.read();
  expect(webhooks.bundles).toEqual(["of the APIService"]);
  expect(server.asked.filter((one) => one.endsWith("/usher"))).toEqual([]);
});
