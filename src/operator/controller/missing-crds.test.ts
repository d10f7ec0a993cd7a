import { expect, onTestFinished, test, vi } from "vitest";
import { ANCHOR, CRD, running } from "../../../test/support/operator/controller.ts";
import type { ClusterSource } from "../../cluster/source/cluster-source.ts";
import type { Installation } from "../../core/installation/installation.ts";
import { OWN_LABELS } from "../../core/registration/names.ts";
import { createMissingCrds } from "./missing-crds.ts";

/** A replica that waits for its kind, and an API server without it. */
function waiting({ served = false, ...installation }: Partial<Installation> & { served?: boolean } = {}) {
  const { server, assembly, logged } = running({}, undefined, installation);
  const write = (facts: object, message: string) => void logged.push({ facts, message });
  const state = { ready: false };
  const stop = new AbortController();
  onTestFinished(() => stop.abort());
  const source = {
    assembly,
    get ready() {
      return state.ready;
    },
    cache: { status: () => [{ resource: "seatings.test.usher.dev", served }] },
  } as unknown as ClusterSource;
  const start = () =>
    createMissingCrds({
      client: server.client,
      source,
      log: { debug: write, info: write, warn: write, error: write },
      version: "1.2.0",
      signal: stop.signal,
      retryMs: 5,
    });
  return { server, state, logged, start };
}

test("a kind that is not served gets its CRD, and then nothing more is done", async () => {
  const { server, state, start } = waiting();
  const ended = start();
  await vi.waitFor(() => expect(server.objects.get(CRD)).toMatchObject({ metadata: { labels: OWN_LABELS } }));
  state.ready = true;
  await ended;
  expect(server.asked.filter((one) => one.startsWith("PATCH"))).toHaveLength(1);
});

test("an existing CRD is left unchanged", async () => {
  const { server, state, start } = waiting();
  server.put(CRD, { metadata: { labels: { app: "kupid" } } });
  const ended = start();
  await vi.waitFor(() => expect(server.asked.filter((one) => one.includes(CRD)).length).toBeGreaterThan(2));
  state.ready = true;
  await ended;
  expect(server.asked.filter((one) => one.startsWith("PATCH"))).toEqual([]);
});

test.each<[string, Parameters<typeof waiting>[0]]>([
  ["all kinds are served", { served: true }],
  ["CRDs are not usher's to manage", { manageCrds: false }],
])("nothing is read if %s", async (_why, options) => {
  const { server, state, start } = waiting(options);
  setTimeout(() => (state.ready = true), 50);
  await start();
  expect(server.asked).toEqual([]);
});

test("without the anchor usher is being removed: nothing is created", async () => {
  const { server, state, start } = waiting();
  server.objects.delete(ANCHOR);
  const ended = start();
  await vi.waitFor(() =>
    expect(server.asked.filter((one) => one.includes(ANCHOR)).length).toBeGreaterThan(2),
  );
  state.ready = true;
  await ended;
  expect(server.objects.has(CRD)).toBe(false);
});

test("a failure is logged once, and retried", async () => {
  const { server, state, logged, start } = waiting();
  const { fault } = server;
  let failures = 3;
  server.fault = (method, path, options) => {
    if (method === "PATCH" && failures-- > 0) throw new Error("connection refused");
    return fault?.(method, path, options);
  };
  const ended = start();
  await vi.waitFor(() => expect(server.objects.has(CRD)).toBe(true));
  state.ready = true;
  await ended;
  expect(logged.map(({ message }) => message)).toEqual([
    "failed to create missing CRDs, retrying",
    "CRD created",
  ]);
});
