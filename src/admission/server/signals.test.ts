import { afterEach, expect, test } from "vitest";
import { type Log, SILENT } from "../../core/log.ts";
import { onSignals } from "./signals.ts";

let off: (() => void) | undefined;
afterEach(() => off?.());

function listen(drain: () => Promise<void>, log: Log = SILENT) {
  const codes: number[] = [];
  off = onSignals({ drain, log, exit: (code) => codes.push(code) });
  return codes;
}

test.each(["SIGTERM", "SIGINT"] as const)("%s drains, then exits 0", async (signal) => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const codes = listen(() => promise);
  process.emit(signal, signal);
  await Promise.resolve();
  expect(codes).toEqual([]);
  resolve();
  await expect.poll(() => codes).toEqual([0]);
});

test("a second signal exits immediately", () => {
  let drains = 0;
  const codes = listen(() => {
    drains++;
    return new Promise(() => undefined);
  });
  process.emit("SIGTERM", "SIGTERM");
  expect(codes).toEqual([]);
  process.emit("SIGINT", "SIGINT");
  expect(codes).toEqual([130]);
  expect(drains).toBe(1);
});

test("a failed drain is exit code 3", async () => {
  const said: string[] = [];
  const codes = listen(() => Promise.reject(new Error("stuck")), {
    ...SILENT,
    error: (_facts, message) => said.push(message),
  });
  process.emit("SIGTERM", "SIGTERM");
  await expect.poll(() => codes).toEqual([3]);
  expect(said).toEqual(["shutdown failed"]);
});
