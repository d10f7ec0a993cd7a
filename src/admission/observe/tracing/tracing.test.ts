import { afterEach, beforeEach, expect, test } from "vitest";
import { type Collector, startCollector } from "../../../../test/support/admission/collector.ts";
import { post, responseOf, review } from "../../../../test/support/admission/example-cluster.ts";
import { startTestServer } from "../../../../test/support/admission/server.ts";
import { type Log, SILENT } from "../../../core/log.ts";
import type { AdmissionServer } from "../../admission-server.ts";

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const CALLER = "00f067aa0ba902b7";
const UID = "705ab4f5-6393-11e8-b7cc-42010a800002";

let collector: Collector;
let server: AdmissionServer;

beforeEach(async () => {
  collector = await startCollector();
});
afterEach(async () => {
  await server.close();
  await collector.close();
});

async function serve(sampling?: number, log: Log = SILENT): Promise<void> {
  const { endpoint } = collector;
  const tracing = { endpoint, ...(sampling === undefined ? {} : { sampling }) };
  server = await startTestServer({ tracing, instance: "usher-1", version: "1.2.3", log });
}

async function ask(path: string, traceparent?: string) {
  const headers = {
    "content-type": "application/json",
    ...(traceparent === undefined ? {} : { traceparent }),
  };
  return post(`${server.webhookAddress.url}${path}`, server.ca, review(), { headers });
}

/** Closing exports the remaining spans. */
async function spans() {
  await server.close();
  return collector.spans;
}

test("exports one span per review, under the caller's, and a child for each run of a module", async () => {
  await serve();
  const before = BigInt(Date.now()) * 1_000_000n;
  responseOf(await ask("/validate/welcome/pool/refuse", `00-${TRACE}-${CALLER}-01`));
  const received = await spans();
  const root = received.find(({ parentSpanId }) => parentSpanId === CALLER);
  expect(root).toMatchObject({
    name: "validate pods",
    traceId: TRACE,
    error: false,
    attributes: {
      "usher.phase": "validate",
      "usher.uid": UID,
      "usher.operation": "CREATE",
      "usher.resource": "pods",
      "usher.dry_run": false,
      "usher.verdict": "deny",
      "http.response.status_code": 200,
    },
    resource: { "service.name": "usher", "service.version": "1.2.3", "service.instance.id": "usher-1" },
  });
  const children = received.filter((span) => span !== root);
  // `pool` needs a fact, so all of them run twice.
  expect(
    children.map(({ name, attributes }) => [name, attributes["usher.hook"], attributes["usher.verdict"]]),
  ).toEqual([
    ["tiny", "welcome", "undecided"],
    ["tiny", "pool", "undecided"],
    ["tiny", "refuse", "undecided"],
    ["tiny", "welcome", "allow"],
    ["tiny", "pool", "allow"],
    ["tiny", "refuse", "deny"],
  ]);
  for (const child of children) {
    expect(child).toMatchObject({ traceId: TRACE, parentSpanId: root?.spanId });
    expect(child.start).toBeGreaterThanOrEqual(root?.start ?? 0n);
    expect(child.end).toBeLessThanOrEqual(root?.end ?? 0n);
  }
  // Milliseconds are rounded, so one of them may be missing.
  expect(root?.start).toBeGreaterThanOrEqual(before - 2_000_000n);
  expect(root?.end).toBeLessThanOrEqual(BigInt(Date.now() + 2) * 1_000_000n);
});

test("exports no users and no object names", async () => {
  await serve();
  await ask("/mutate/label");
  const text = JSON.stringify(await spans(), (_, value) =>
    typeof value === "bigint" ? String(value) : value,
  );
  expect(text).toContain('"usher.verdict":"patch"');
  for (const private_ of ["ann", "shop", "web", "authenticated"]) expect(text).not.toContain(private_);
});

test("a module that throws marks its span as an error, and a refused request has a span too", async () => {
  await serve();
  await ask("/validate/throws-open");
  await ask("/validate/none-such");
  const received = await spans();
  expect(received.map(({ name, error }) => [name, error])).toEqual([
    ["tiny", true],
    ["validate pods", false],
    ["review", false],
  ]);
  expect(received[2]?.attributes).toEqual({ "http.response.status_code": 404 });
});

test.each([
  ["the caller does not record", `00-${TRACE}-${CALLER}-00`, 1, 0],
  ["the caller records", `00-${TRACE}-${CALLER}-01`, 0, 2],
  ["no caller, none sampled", undefined, 0, 0],
  ["no caller, all sampled", undefined, 1, 2],
  ["a caller that can't be parsed counts as none", `00-${"0".repeat(32)}-${CALLER}-01`, 0, 0],
])("follows the sampling decision: %s", async (_, traceparent, sampling, count) => {
  await serve(sampling);
  await ask("/mutate/label", traceparent);
  expect(await spans()).toHaveLength(count);
});

test("a failing collector is logged once, and reviews are answered", async () => {
  const logged: string[] = [];
  const log: Log = { ...SILENT, warn: (facts, text) => logged.push(`${text} ${JSON.stringify(facts)}`) };
  collector.status = 400;
  await serve(1, log);
  expect((await ask("/mutate/label")).status).toBe(200);
  await server.close();
  expect(logged).toHaveLength(1);
  expect(logged[0]).toContain("failed to export spans");
});
