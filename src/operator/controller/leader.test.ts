import { setTimeout as later } from "node:timers/promises";
import { expect, onTestFinished, test, vi } from "vitest";
import { TestApiServer } from "../../../test/support/cluster/api-server.ts";
import { moduleWith } from "../../../test/support/cluster/controller.ts";
import { ListMemory } from "../../cluster/client/list-memory.ts";
import type { InformerCache } from "../../cluster/informers/informer-cache.ts";
import { LEASE_TIMES } from "../../cluster/leader-election/lease-state.ts";
import { Gates } from "../../core/installation/gates.ts";
import { DEFAULT_INSTALLATION } from "../../core/installation/installation.ts";
import { SILENT } from "../../core/log.ts";
import { Assembly } from "../../core/module/assembly.ts";
import { Leader } from "./leader.ts";

/** A leader whose reconciler has one key, and a cache whose leader-only resources are synced when the test says so. */
function leaderWith() {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
  onTestFinished(() => void vi.useRealTimers());
  const server = new TestApiServer();
  let reconciled = 0;
  const module = moduleWith({
    initialState: () => undefined,
    initialKeys: () => [{ kind: "all" }],
    keys: () => [],
    reconcile: () => {
      reconciled += 1;
      return { writes: [] };
    },
  });
  const synced = Promise.withResolvers<void>();
  const cache: Partial<InformerCache> = {
    has: () => true,
    startLeading: () => synced.promise,
    stopLeading: async () => undefined,
  };
  const source = {
    assembly: new Assembly([module], DEFAULT_INSTALLATION, new Gates([])),
    resources: server.resources,
    lists: new ListMemory(SILENT),
    cache: cache as InformerCache,
    onChange: () => undefined,
    ready: true,
    fetch: async () => [],
    commit: async () => "done" as const,
    stop: async () => undefined,
  };
  const leader = new Leader({ client: server.client, source, lease: "usher", identity: "a", log: SILENT });
  onTestFinished(() => leader.stop());
  leader.start();
  const pass = async (ms: number) => {
    for (let passed = 0; passed < ms; passed += 100) {
      vi.advanceTimersByTime(100);
      await later(2);
    }
  };
  return { server, leader, synced: () => synced.resolve(), pass, reconciled: () => reconciled };
}

test("a leader reconciles everything again when a former leader, which may have overwritten a status, can't write any more", async () => {
  const { synced, pass, reconciled } = leaderWith();
  synced();
  await pass(LEASE_TIMES.durationMs - 1_000);
  expect(reconciled()).toBe(1);
  await pass(2_000);
  expect(reconciled()).toBe(2);
  await pass(2 * LEASE_TIMES.durationMs);
  expect(reconciled()).toBe(2);
});

test("a leader whose renewal is late at the moment in which its resources are synced reconciles nevertheless", async () => {
  const { server, leader, synced, pass, reconciled } = leaderWith();
  const renewal = Promise.withResolvers<undefined>();
  await pass(1_000);
  server.fault = (method) => (method === "PUT" ? renewal.promise : undefined);
  await pass(LEASE_TIMES.renewMs);
  expect(server.asked.at(-1)).toMatch(/^PUT /);
  // The process was busy: its clock went on, and its timers did not.
  const now = performance.now() + LEASE_TIMES.renewDeadlineMs - LEASE_TIMES.renewMs;
  const clock = vi.spyOn(performance, "now").mockReturnValue(now);
  expect(leader.leading).toBe(false);
  synced();
  await later(2);
  renewal.resolve(undefined);
  await later(2);
  clock.mockRestore();
  await pass(100);
  expect(leader.leading).toBe(true);
  expect(reconciled()).toBe(1);
});
