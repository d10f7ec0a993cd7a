import { expect, test } from "vitest";
import { review, testModule, testSource } from "../../../test/support/admission/example-cluster.ts";
import { allow, deny } from "../../core/decision/decision.ts";
import { type Log, SILENT } from "../../core/log.ts";
import { afterResponse } from "./after-response.ts";
import { ReviewHandler } from "./handle.ts";

/** The log lines about a request to a hook of the test module. */
async function logged(
  path: string,
  request: object,
  module = testModule(),
  { times = 1, verified = true } = {},
): Promise<object[]> {
  const lines: object[] = [];
  const write = (facts: object, message: string) => void lines.push({ ...facts, message });
  const log: Log = { ...SILENT, info: write, error: write };
  const { handle } = new ReviewHandler({ source: testSource({}, module), log, acceptsToken: () => verified });
  const record = afterResponse({ log, count: () => undefined });
  for (let i = 0; i < times; i++) {
    const { evaluation } = await handle(Buffer.from(JSON.stringify(review({ ...request }))), path);
    if (evaluation === undefined) throw new Error("nothing was evaluated");
    record(evaluation);
  }
  return lines;
}

test("logs ten denials of an API server as ten lines, and those of an unverified caller as one marked line", async () => {
  const judge = () => deny({ code: 403, reason: "Forbidden" }, []);
  const module = testModule({ one: { phase: "validate" as const, judge } });
  const real = await logged("/validate", {}, module, { times: 10 });
  expect(real).toHaveLength(10);
  expect(real[0]).toMatchObject({ message: "denied" });
  expect(real[0]).not.toHaveProperty("verified");
  expect(await logged("/validate", {}, module, { times: 10, verified: false })).toEqual([
    expect.objectContaining({ message: "unverified caller: denied", verified: false }),
  ]);
});

test("the log line of a denial stays below 16 KiB for any denial", async () => {
  const violations = Array.from({ length: 200 }, (_, i) => ({
    rule: "rule",
    outcome: "violated" as const,
    message: `policy ${i} requires ${"x".repeat(5_000)}`,
  }));
  const judge = () => deny({ code: 403, reason: "Forbidden" }, violations);
  const hooks = Object.fromEntries(
    ["one", "two"].map((name) => [name, { phase: "validate" as const, judge }]),
  );
  const long = "n".repeat(100_000);
  const request = { name: long, userInfo: { username: long, groups: [] } };
  const [line, ...more] = await logged("/validate", request, testModule(hooks));
  expect(more).toEqual([]);
  expect(line).toMatchObject({ message: "denied", denials: [{ hook: "one" }, { hook: "two" }] });
  expect(JSON.stringify(line).length).toBeLessThan(16_384);
});

test("logs what an informing policy would have denied", async () => {
  const judge = () => allow([{ rule: "rule", outcome: "would-violate", message: "not here" }]);
  const hooks = { one: { phase: "validate" as const, judge } };
  expect(await logged("/validate", {}, testModule(hooks))).toEqual([
    expect.objectContaining({ message: "would be denied", violations: "not here" }),
  ]);
});

test("the log has the error of a module that threw", async () => {
  expect(await logged("/validate/throws-open", {})).toEqual([
    expect.objectContaining({ module: "tiny", error: "inner workings", stack: expect.any(String) }),
  ]);
});
