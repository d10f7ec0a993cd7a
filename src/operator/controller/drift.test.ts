import { expect, test, vi } from "vitest";
import { MUTATING, rounds, running, seat, VALIDATING } from "../../../test/support/operator/controller.ts";
import { type JsonObject, listAt } from "../../core/json.ts";

const isDrift = ({ message }: { readonly message: string }) => message.startsWith("drift");

test("with manageWebhooks: false nothing is written, and differences are logged once and counted", async () => {
  const run = running({}, undefined, { manageWebhooks: false });
  const figures = () => Object.fromEntries(run.controller.drift);
  run.controller.start();
  await rounds(run, 3);
  expect(run.server.objects.has(MUTATING)).toBe(false);
  expect(figures()).toEqual({
    "MutatingWebhookConfiguration usher": 1,
    "ValidatingWebhookConfiguration usher": 1,
  });
  expect(run.logged.filter(isDrift)).toHaveLength(2);

  // As another client applies the objects that usher would register.
  const other = running();
  other.controller.start();
  await vi.waitFor(() => expect(other.server.objects.has(VALIDATING)).toBe(true), 10_000);
  const apply = (token: string) => {
    for (const path of [MUTATING, VALIDATING]) {
      const text = JSON.stringify(listAt(other.server.objects.get(path), "webhooks"));
      const webhooks = JSON.parse(text.replaceAll('"path":"/', `"path":"/${token}`)) as JsonObject[];
      run.server.put(path, { metadata: {}, webhooks });
    }
  };
  apply("");
  await vi.waitFor(() =>
    expect(JSON.stringify(run.logged.filter(isDrift))).toContain("webhooks[0].clientConfig.service.path"),
  );

  apply(`${"0".repeat(40)}/`);
  await vi.waitFor(() => expect(Object.values(figures())).toEqual([0, 0]), 10_000);

  // A policy needs more, which is not applied yet.
  seat(run, "1");
  await vi.waitFor(() => expect(Object.values(figures()).every((n) => n > 0)).toBe(true), 10_000);
  const writes = run.server.asked.filter((one) =>
    /^(PATCH|PUT|POST|DELETE) .*webhookconfigurations/.test(one),
  );
  expect(writes).toEqual([]);
  expect((run.server.objects.get(MUTATING) as JsonObject)["metadata"]).not.toHaveProperty("labels");
});

test("a deleted configuration is logged once and counted until it exists again", async () => {
  const run = running({ installed: true });
  const figure = () => run.controller.drift.get("ConfigMap usher-system/usher-configuration");
  run.controller.start();
  await vi.waitFor(() => expect(figure()).toBe(1), 10_000);
  run.server.put("/api/v1/namespaces/usher-system/configmaps/usher-configuration", {});
  await vi.waitFor(() => expect(figure()).toBe(0), 10_000);
  expect(run.logged.filter(isDrift)).toHaveLength(1);
  expect(JSON.stringify(run.logged.filter(isDrift))).toContain("new replicas wait for the configuration");
});
