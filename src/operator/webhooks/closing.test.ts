import { expect, test, vi } from "vitest";
import {
  FOLLOWING,
  MUTATING,
  rounds,
  rules,
  running,
  SLICE,
  seat,
} from "../../../test/support/operator/controller.ts";
import type { EventToWrite } from "../../core/decision/finding.ts";
import { at, type JsonObject } from "../../core/json.ts";
import type { Module } from "../../core/module/module.ts";

/** As the watchdog leaves it. */
function open(run: ReturnType<typeof running>): void {
  const live = run.server.objects.get(MUTATING) ?? {};
  const webhooks = (live["webhooks"] as JsonObject[]).map((entry) => ({ ...entry, failurePolicy: "Ignore" }));
  const metadata = live["metadata"] as JsonObject;
  const annotations = { ...(metadata["annotations"] as JsonObject), "usher.dev/opened": '{"reason":"none"}' };
  run.server.put(MUTATING, { ...live, webhooks, metadata: { ...metadata, annotations } });
}

const CLOSED: Module = {
  ...FOLLOWING,
  hooks: (...args) => FOLLOWING.hooks(...args).map((hook) => ({ ...hook, failure: "closed" })),
};

async function opened() {
  const events: EventToWrite[] = [];
  const run = running({ publish: (all) => events.push(...all) }, [CLOSED]);
  run.controller.start();
  await vi.waitFor(() => expect(policy(run)).toBe("Fail"), 10_000);
  await rounds(run, 2);
  return { run, events };
}

function policy(run: ReturnType<typeof running>) {
  return at(run.server.objects.get(MUTATING), "webhooks", 0, "failurePolicy");
}

const annotations = (run: ReturnType<typeof running>) =>
  at(run.server.objects.get(MUTATING), "metadata", "annotations");

test("a leader closes opened entries once a replica is ready, with an event", async () => {
  const { run, events } = await opened();
  run.server.put("/apis/apps/v1/namespaces/usher-system/deployments/usher", { metadata: { uid: "d" } });
  open(run);
  await vi.waitFor(() => expect(policy(run)).toBe("Fail"), 10_000);
  await vi.waitFor(() => expect(events).toHaveLength(1), 10_000);
  expect(annotations(run)).toEqual({ "usher.dev/openable": "seating.usher.dev" });
  expect(events).toMatchObject([
    { type: "Normal", reason: "WebhooksClosed", regarding: { kind: "Deployment", name: "usher", uid: "d" } },
  ]);
  const writes = run.server.count("PATCH 200");
  await rounds(run, 3);
  expect(run.server.count("PATCH 200")).toBe(writes);
  expect(events).toHaveLength(1);
});

test("a leader that stops in the middle leaves the event to the next one", async () => {
  const { run, events } = await opened();
  const { fault } = run.server;
  let stopped: Promise<void> | undefined;
  run.server.fault = (method, path, ...rest) => {
    if (method === "PATCH" && path.startsWith(MUTATING)) stopped = run.controller.stop();
    return fault?.(method, path, ...rest);
  };
  open(run);
  await vi.waitFor(() => expect(stopped).toBeDefined(), 10_000);
  await stopped;
  expect(events).toEqual([]);
  run.server.fault = fault;
  const next = running({ client: run.server.client, publish: (all) => events.push(...all) }, [CLOSED]);
  next.controller.start();
  await vi.waitFor(() => expect(events).toMatchObject([{ reason: "WebhooksClosed" }]), 10_000);
  expect(policy(run)).toBe("Fail");
  expect(annotations(run)).toEqual({ "usher.dev/openable": "seating.usher.dev" });
});

test("a leader that is not ready itself leaves them open: the watchdog would open them again", async () => {
  const { run, events } = await opened();
  run.server.put(SLICE, { endpoints: [{ conditions: { ready: false } }] });
  open(run);
  await rounds(run, 4);
  expect(policy(run)).toBe("Ignore");
  expect(annotations(run)).toMatchObject({ "usher.dev/opened": expect.any(String) });
  expect(events).toEqual([]);
  run.server.put(SLICE, { endpoints: [{ conditions: { ready: true } }] });
  await vi.waitFor(() => expect(policy(run)).toBe("Fail"), 10_000);
});

test("an opened webhook gets the bundle by which replicas become ready, loses former entries, and stays open until one is", async () => {
  const { run } = await opened();
  run.server.put(SLICE, { endpoints: [{ conditions: { ready: false } }] });
  const client = () => at(run.server.objects.get(MUTATING), "webhooks", 0, "clientConfig");
  const before = client();
  open(run);
  const live = run.server.objects.get(MUTATING) ?? {};
  const [entry] = live["webhooks"] as JsonObject[];
  const clientConfig = { ...(entry?.["clientConfig"] as JsonObject), caBundle: "b2xk" };
  const former = { ...entry, name: "former.usher.dev", clientConfig };
  run.server.put(MUTATING, { ...live, webhooks: [former, { ...entry, clientConfig }] });
  await vi.waitFor(() => expect(client()).toEqual(before), 10_000);
  expect(at(run.server.objects.get(MUTATING), "webhooks")).toHaveLength(1);
  expect(policy(run)).toBe("Ignore");
  const writes = run.server.count("PATCH 200");
  await rounds(run, 3);
  expect(run.server.count("PATCH 200")).toBe(writes);
});

test("without a ready replica no entry becomes fail-closed, as after a policy was written meanwhile", async () => {
  const { run } = await opened();
  run.server.put(SLICE, { endpoints: [{ conditions: { ready: false } }] });
  const live = run.server.objects.get(MUTATING) ?? {};
  const [entry] = live["webhooks"] as JsonObject[];
  // As it was before that policy; the watchdog opened nothing.
  run.server.put(MUTATING, { ...live, webhooks: [{ ...entry, failurePolicy: "Ignore" }] });
  await rounds(run, 4);
  expect(policy(run)).toBe("Ignore");
  expect(annotations(run)).not.toHaveProperty(["usher.dev/opened"]);
  run.server.put(SLICE, { endpoints: [{ conditions: { ready: true } }] });
  await vi.waitFor(() => expect(policy(run)).toBe("Fail"), 10_000);
});

test("without a ready replica a fail-closed entry covers no more, as after a policy was written meanwhile", async () => {
  const { run } = await opened();
  run.server.put(SLICE, { endpoints: [{ conditions: { ready: false } }] });
  seat(run, "1");
  await rounds(run, 4);
  expect(rules(run.server)).toEqual(["pods"]);
  run.server.put(SLICE, { endpoints: [{ conditions: { ready: true } }] });
  await vi.waitFor(() => expect(rules(run.server)).toEqual(["pods", "services"]), 10_000);
});

test("an edit of the openable entries is reverted", async () => {
  const { run } = await opened();
  const live = run.server.objects.get(MUTATING) ?? {};
  const metadata = live["metadata"] as JsonObject;
  run.server.put(MUTATING, { ...live, metadata: { ...metadata, annotations: { "usher.dev/openable": "" } } });
  await vi.waitFor(
    () => expect(annotations(run)).toEqual({ "usher.dev/openable": "seating.usher.dev" }),
    10_000,
  );
});
