import { expect, test } from "vitest";
import { SILENT } from "../../core/log.ts";
import { SAMPLE_MS, sampledLog, unverifiedLog } from "./log-sampling.ts";

test("logs the same error once a second, with the number of omitted ones, and another error immediately", () => {
  let now = 0;
  const said: object[] = [];
  const log = sampledLog(
    { ...SILENT, error: (facts, message) => said.push({ ...facts, message }) },
    () => now,
  );
  for (let i = 0; i < 100; i++) log.error({ i }, "broke");
  log.error({}, "another");
  now += SAMPLE_MS;
  log.error({ i: 100 }, "broke");
  now += SAMPLE_MS;
  log.error({ i: 101 }, "broke");
  expect(said).toEqual([
    { i: 0, message: "broke" },
    { message: "another" },
    { i: 100, leftOut: 99, message: "broke" },
    { i: 101, message: "broke" },
  ]);
});

test("logs lower levels always", () => {
  const said: string[] = [];
  const write = (_facts: object, message: string) => said.push(message);
  const log = sampledLog({
    ...SILENT,
    debug: write,
    info: write,
    isLevelEnabled: (level) => level === "debug",
  });
  for (let i = 0; i < 3; i++) log.info({}, "refused");
  log.debug({}, "decided");
  expect(said).toEqual(["refused", "refused", "refused", "decided"]);
  expect(log.isLevelEnabled?.("debug")).toBe(true);
  expect(log.isLevelEnabled?.("info")).toBe(false);
});

test.each(["debug", "info", "warn", "error"] as const)(
  "logs one line of level %s a second for unverified callers, marked as such, with the number of omitted ones",
  (level) => {
    let now = 0;
    const said: object[] = [];
    const log = unverifiedLog(
      { ...SILENT, [level]: (facts: object, message: string) => said.push({ ...facts, message }) },
      () => now,
    );
    for (let i = 0; i < 100; i++) log[level]({ user: `admin-${i}` }, "denied");
    now += SAMPLE_MS;
    log[level]({ user: "admin" }, "denied");
    expect(said).toEqual([
      { verified: false, user: "admin-0", message: "unverified caller: denied" },
      { verified: false, user: "admin", leftOut: 99, message: "unverified caller: denied" },
    ]);
  },
);
