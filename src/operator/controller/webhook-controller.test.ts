import { expect, test, vi } from "vitest";
import { answerOf, refuse } from "../../../test/support/cluster/api-server.ts";
import {
  bundleIn,
  CRD,
  HOOKS,
  MUTATING,
  publish,
  rounds,
  rules,
  running,
  SLICE,
  seat,
  VALIDATING,
} from "../../../test/support/operator/controller.ts";
import { at, type Json, type JsonObject, listAt, stringAt } from "../../core/json.ts";
import { OWN_LABELS } from "../../core/registration/names.ts";

test("webhooks are registered once the Service has a ready replica, not before", async () => {
  const run = running();
  run.server.put(SLICE, { endpoints: [{ conditions: { ready: false } }] });
  run.controller.start();
  await rounds(run, 2);
  expect(run.server.objects.has(MUTATING)).toBe(false);
  expect(run.trusts.at(-1)).toBe("no webhooks");
  run.server.put(SLICE, { endpoints: [{ conditions: { ready: false } }, { conditions: { ready: true } }] });
  await vi.waitFor(() => {
    expect(run.server.objects.has(VALIDATING)).toBe(true);
    expect(stringAt(run.server.objects.get(MUTATING), "webhooks", 0, "clientConfig", "caBundle")).toBe(
      "b25l",
    );
  }, 10_000);
});

test("once calls to a registered webhook may have failed, its path counts as exposed", async () => {
  const run = running();
  run.controller.start();
  await vi.waitFor(() => expect(run.server.objects.has(VALIDATING)).toBe(true), 10_000);
  await rounds(run, 2);
  // Nothing was registered at the first look, so nothing was called.
  expect(run.shown).toEqual([]);
  run.server.put(SLICE, { endpoints: [{ conditions: { ready: false } }] });
  await vi.waitFor(() => expect(run.shown).toHaveLength(1), 10_000);
  run.server.put(SLICE, { endpoints: [{ conditions: { ready: true } }] });
  await vi.waitFor(() => expect(run.shown).toHaveLength(2), 10_000);
  await rounds(run, 2);
  expect(run.shown).toHaveLength(2);
  // A new leader does not know earlier events.
  await run.controller.stop();
  const next = running();
  for (const [path, object] of run.server.objects) next.server.put(path, object);
  next.controller.start();
  await vi.waitFor(() => expect(next.shown).toHaveLength(1), 10_000);
});

test.each(["deleted", "emptied"])(
  "the path of webhooks that were %s while no replica was ready counts as exposed, too",
  async (how) => {
    const run = running();
    run.controller.start();
    await vi.waitFor(() => expect(run.server.objects.has(VALIDATING)).toBe(true), 10_000);
    await rounds(run, 2);
    run.server.put(SLICE, { endpoints: [{ conditions: { ready: false } }] });
    for (const path of [MUTATING, VALIDATING])
      if (how === "deleted") run.server.objects.delete(path);
      else run.server.put(path, { ...run.server.objects.get(path), webhooks: [] });
    await rounds(run, 2);
    const before = run.shown.length;
    run.server.put(SLICE, { endpoints: [{ conditions: { ready: true } }] });
    await vi.waitFor(
      () => expect(listAt(run.server.objects.get(VALIDATING), "webhooks")).toHaveLength(1),
      10_000,
    );
    expect(run.shown.length).toBeGreaterThan(before);
  },
);

test("they follow the policies and the bundle, and are not written if they are as desired", async () => {
  const run = running();
  run.controller.start();
  await vi.waitFor(() => expect(rules(run.server)).toEqual(["pods"]), 10_000);
  await rounds(run, 2);
  const stable = run.server.count("PATCH 200");
  await rounds(run, 3);
  expect(run.server.count("PATCH 200")).toBe(stable);

  seat(run, "1");
  await vi.waitFor(() => expect(rules(run.server)).toEqual(["pods", "services"]), 10_000);

  run.certificates.bundle = "two";
  await vi.waitFor(
    () =>
      expect(stringAt(run.server.objects.get(VALIDATING), "webhooks", 0, "clientConfig", "caBundle")).toBe(
        "dHdv",
      ),
    10_000,
  );
});

test("the time of trust counts from when every published bundle has the next CA", async () => {
  let now = 1_000;
  const run = running({ clock: () => now });
  run.controller.start();
  await vi.waitFor(() => expect(run.server.objects.has(VALIDATING)).toBe(true), 10_000);
  await rounds(run, 2);
  expect(run.trusts.at(-1)).toBe("not yet");
  run.certificates.nextAuthority = "three";
  await rounds(run, 2);
  expect(run.trusts.at(-1)).toBe("not yet");
  run.certificates.bundle = "onethree";
  await vi.waitFor(() => expect(run.trusts.at(-1)).toEqual({ forMs: 0 }), 10_000);
  now = 9_000;
  await rounds(run, 2);
  expect(run.trusts.at(-1)).toEqual({ forMs: 8_000 });
});

test("without a usable certificate the published bundle stays, as long as it has the CA in use", async () => {
  const run = running();
  run.controller.start();
  await vi.waitFor(() => expect(run.server.objects.has(VALIDATING)).toBe(true), 10_000);
  // Another leader had newer information.
  run.certificates.bundle = undefined;
  for (const path of [MUTATING, VALIDATING]) publish(run.server, path, "zero, one");
  await rounds(run, 2);
  expect(bundleIn(run.server)).toBe("zero, one");
  // Hooks still follow the policies.
  seat(run, "1");
  await vi.waitFor(() => expect(rules(run.server)).toEqual(["pods", "services"]), 10_000);
  expect(bundleIn(run.server)).toBe("zero, one");

  publish(run.server, MUTATING, "");
  await vi.waitFor(() => expect(bundleIn(run.server)).toBe("one"), 10_000);

  // Nothing is registered without a usable certificate.
  run.server.objects.delete(VALIDATING);
  await rounds(run, 3);
  expect(run.server.objects.has(VALIDATING)).toBe(false);

  // A replica without a certificate keeps the existing bundle.
  run.certificates.ownAuthority = undefined;
  publish(run.server, MUTATING, "zero");
  await rounds(run, 2);
  expect(bundleIn(run.server)).toBe("zero");
});

test("a webhook configuration of another owner is left, and the conflict logged once", async () => {
  const run = running();
  const theirs = { metadata: { labels: { app: "ushers-guild" } }, webhooks: [{ name: "a.example.com" }] };
  run.server.put(MUTATING, theirs);
  run.controller.start();
  await vi.waitFor(() => expect(run.server.objects.has(VALIDATING)).toBe(true), 10_000);
  await rounds(run, 2);
  expect(run.server.objects.get(MUTATING)).toMatchObject(theirs);
  const entries = run.logged.filter(({ message }) =>
    message.startsWith("ownership conflict: webhook configuration"),
  );
  expect(entries).toHaveLength(1);
  expect(entries[0]?.message).toMatch(
    /^ownership conflict: webhook configuration .*usher install --take-over/,
  );
  expect(JSON.stringify(entries[0]?.facts)).toMatch(
    /MutatingWebhookConfiguration usher belongs to ushers-guild/,
  );

  // As install marks objects that it takes over.
  run.server.put(MUTATING, { ...theirs, metadata: { labels: OWN_LABELS } });
  await vi.waitFor(() => expect(rules(run.server)).toEqual(["pods"]), 10_000);
});

test("a field that the API server does not store is written once, and logged once", async () => {
  const run = running();
  const { fault } = run.server;
  const pruned = (webhooks: Json | undefined) =>
    listAt({ webhooks: webhooks ?? null }, "webhooks").map((entry) => {
      const { timeoutSeconds: _dropped, ...rest } = entry as JsonObject;
      return rest;
    });
  run.server.fault = async (method, path, options) => {
    const { body } = options;
    const [key = ""] = path.split("?");
    if (method !== "PATCH" || !key.startsWith(HOOKS)) return fault(method, path, options);
    const webhooks = Array.isArray(body) ? at(body as Json, 1, "value") : at(body as Json, "webhooks");
    const more = Array.isArray(body) ? {} : (body as JsonObject);
    return answerOf(
      200,
      run.server.put(key, { ...run.server.objects.get(key), ...more, webhooks: pruned(webhooks) }),
    );
  };
  run.controller.start();
  await rounds(run, 3);
  const stable = run.server.count("PATCH 200");
  const logged = run.logged.length;
  await rounds(run, 3);
  expect(run.server.count("PATCH 200")).toBe(stable);
  expect(run.logged.length).toBe(logged);
  const entries = run.logged.filter(({ message }) => message.includes("does not store"));
  expect(entries.map(({ facts }) => facts)).toEqual([
    { object: "MutatingWebhookConfiguration usher", lost: ["webhooks[0].timeoutSeconds"] },
    { object: "ValidatingWebhookConfiguration usher", lost: ["webhooks[0].timeoutSeconds"] },
  ]);

  // An edit beside it is still repaired, and webhooks still follow.
  publish(run.server, MUTATING, "edited");
  await vi.waitFor(() => expect(bundleIn(run.server)).toBe("one"), 10_000);
  seat(run, "1");
  await vi.waitFor(() => expect(rules(run.server)).toEqual(["pods", "services"]), 10_000);
});

test("fields of another manager that make the configuration invalid are replaced", async () => {
  const run = running();
  run.controller.start();
  await rounds(run, 2);
  const { fault } = run.server;
  const conflicting = { url: "https://example.com/x" };
  const urlOf = (path: string) =>
    stringAt(run.server.objects.get(path), "webhooks", 0, "clientConfig", "url");
  run.server.fault = async (method, path, options) => {
    const [key = ""] = path.split("?");
    const mixed = method === "PATCH" && !Array.isArray(options.body) && urlOf(key) !== undefined;
    return mixed ? refuse(422, "Invalid") : fault(method, path, options);
  };
  const live = run.server.objects.get(MUTATING) ?? {};
  const [entry] = listAt(live, "webhooks");
  run.server.put(MUTATING, { ...live, webhooks: [{ ...(entry as JsonObject), clientConfig: conflicting }] });
  publish(run.server, VALIDATING, "edited");
  await vi.waitFor(() => {
    expect(urlOf(MUTATING)).toBeUndefined();
    expect(bundleIn(run.server)).toBe("one");
    expect(bundleIn(run.server, VALIDATING)).toBe("one");
  }, 10_000);
});

test("one webhook configuration that can't be repaired does not block the other", async () => {
  const run = running();
  run.controller.start();
  await rounds(run, 2);
  const { fault } = run.server;
  run.server.fault = async (method, path, options) =>
    method === "PATCH" && path.startsWith(MUTATING)
      ? refuse(500, "InternalError")
      : fault(method, path, options);
  publish(run.server, MUTATING, "edited");
  publish(run.server, VALIDATING, "edited");
  await vi.waitFor(() => expect(bundleIn(run.server, VALIDATING)).toBe("one"), 10_000);
  expect(bundleIn(run.server)).toBe("edited");
});

test("a change of the view that affects no hook sends no request", async () => {
  const run = running({ resyncMs: 3_600_000 });
  run.controller.start();
  await vi.waitFor(() => expect(run.server.asked.at(-1)).toContain("customresourcedefinitions"), 10_000);
  await vi.waitFor(() => expect(run.server.objects.has(CRD)).toBe(true), 10_000);
  seat(run, "1");
  await vi.waitFor(() => expect(rules(run.server)).toEqual(["pods", "services"]), 10_000);
  const asked = run.server.asked.length;
  // Each is a separate round; the last one shows that all have run.
  for (let row = 2; row < 6; row++) {
    seat(run, String(row));
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
  run.assembly.apply([{ resource: "seatings.test.usher.dev", namespace: "", name: "a", object: undefined }]);
  run.controller.changed();
  await vi.waitFor(() => expect(rules(run.server)).toEqual(["pods"]), 10_000);
  const later = run.server.asked.slice(asked);
  expect(later.filter((one) => one.startsWith("GET") && one.includes("webhookconfigurations"))).toHaveLength(
    2,
  );
  // The announcements of replicas are read with them.
  expect(later.filter((one) => !/webhookconfigurations|endpointslices|configmaps/.test(one))).toEqual([]);
  expect(run.trusts).toHaveLength(1);
});

test("the webhooks' paths follow the path token", async () => {
  const run = running();
  const path = () =>
    stringAt(run.server.objects.get(MUTATING), "webhooks", 0, "clientConfig", "service", "path");
  run.certificates.pathToken = "a".repeat(40);
  run.controller.start();
  await vi.waitFor(() => expect(path()).toMatch(new RegExp(`^/${"a".repeat(40)}/mutate/`)));
  run.certificates.pathToken = "b".repeat(40);
  await vi.waitFor(() => expect(path()).toMatch(new RegExp(`^/${"b".repeat(40)}/mutate/`)));
});
