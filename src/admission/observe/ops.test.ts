import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { get } from "../../../test/support/admission/example-cluster.ts";
import { SILENT } from "../../core/log.ts";
import { Health } from "./health.ts";
import { type Ops, openOps } from "./ops.ts";
import { livez, ownMetrics, readyz } from "./ops-pages.ts";

const health = new Health();
let ops: Ops;
let figures: () => Promise<string> = async () => "usher_test 1\n";

beforeAll(async () => {
  health.beat();
  ops = await openOps({ health, bind: "127.0.0.1", port: 0, metrics: () => figures(), log: SILENT });
});
afterAll(() => ops.stop());

const page = (path: string, options = {}) => get(`${ops.address.url}${path}`, options);

test("is alive while the heartbeat is recent", () => {
  const one = new Health();
  one.beat();
  expect(livez(one, 15_000)).toEqual({ status: 200, body: "ok\n" });
  const { status, body } = livez(one, -1);
  expect(status).toBe(503);
  expect(body).toMatch(/no heartbeat of the main thread for [\d.]+ s/);
});

test("is ready when all conditions hold, and otherwise lists the failed ones", () => {
  const one = new Health();
  one.beat();
  expect(readyz(one, 15_000, false)).toMatchObject({
    status: 503,
    body: expect.stringMatching(/source-read: .*\ncertificate-trusted: .*\nlistening: .*\nnot-draining: /),
  });
  one.set("source-read", true);
  one.set("listening", true);
  one.set("not-draining", true);
  expect(readyz(one, 15_000, false)).toEqual({
    status: 503,
    body: "not ready\ncertificate-trusted: the CA bundle of the webhook configurations does not trust the serving certificate\n",
  });
  one.set("certificate-trusted", true);
  expect(readyz(one, 15_000, false)).toEqual({ status: 200, body: "ok\n" });
  expect(ownMetrics(one, 15_000, 0)).toContain("\nusher_ready 1\n");
  expect(ownMetrics(one, -1, 0)).toContain("\nusher_ready 0\n");
  expect(readyz(one, -1, true)).toMatchObject({ status: 503, body: expect.stringContaining("[-] alive") });
  one.set("not-draining", false);
  const { body } = readyz(one, 15_000, true);
  expect(body).toContain("[+] listening: ok\n[-] not-draining: this instance is shutting down\n");
});

test("serves its pages and no others", async () => {
  health.beat();
  expect(await page("/")).toMatchObject({ status: 200, body: expect.stringContaining("/metrics") });
  expect((await page("/livez")).body).toBe("ok\n");
  expect((await page("/healthz?x")).body).toBe("ok\n");
  expect((await page("/readyz")).status).toBe(503);
  expect((await page("/readyz?verbose")).body).toContain("[-] source-read");
  expect((await page("/livez/more")).status).toBe(404);
  expect(await page("/livez", { method: "POST" })).toMatchObject({
    status: 405,
    headers: { allow: "GET, HEAD" },
  });
  expect(await page("/livez", { method: "HEAD" })).toMatchObject({ status: 200, body: "" });
});

test("serves current metrics, or the last ones with their age", async () => {
  const { body } = await page("/metrics");
  expect(body).toContain("usher_test 1\n");
  expect(body).toContain("usher_metrics_age_seconds 0\n");
  const { promise, resolve } = Promise.withResolvers<string>();
  figures = () => promise;
  const stale = (await page("/metrics")).body;
  expect(stale).toContain("usher_test 1\n");
  expect(stale).toMatch(/^usher_metrics_age_seconds 0\.[1-9]/m);
  expect(stale).toMatch(/^usher_main_loop_heartbeat_age_seconds /m);
  resolve("usher_test 2\n");
  await expect.poll(async () => (await page("/metrics")).body).toContain("usher_test 2\n");
});

const CHILD = `
  const at = (name) => import(new URL(name, ${JSON.stringify(import.meta.url)}).href);
  const { startTestServer } = await at("../../../test/support/admission/server.ts");
  const server = await startTestServer({ heartbeatTimeoutMs: 1500 });
  console.log(server.opsAddress.url);
  // Not forever: a stuck process does not notice that the process which started it has died.
  process.once("message", () => { for (const end = Date.now() + 60_000; Date.now() < end;); process.exit(); });
`;

/** A server in a separate process, run by Node itself as from a clone. */
async function child(): Promise<{ readonly process: ChildProcess; readonly url: string }> {
  const process_ = spawn(process.execPath, ["--input-type=module", "--eval", CHILD], {
    cwd: fileURLToPath(new URL("../../..", import.meta.url)),
    stdio: ["ignore", "pipe", "inherit", "ipc"],
  });
  if (process_.stdout === null) throw new Error("no output");
  const [line] = await once(process_.stdout, "data");
  return { process: process_, url: String(line).trim() };
}

test("health is answered correctly while the main thread is stuck", async () => {
  const stuck = await child();
  try {
    await expect.poll(async () => (await get(`${stuck.url}/readyz`)).status, { timeout: 10_000 }).toBe(200);
    expect((await get(`${stuck.url}/livez`)).status).toBe(200);
    expect((await get(`${stuck.url}/metrics`)).body).toContain("usher_requests_total");
    stuck.process.send("get stuck");
    // Stuck, but not long enough to be reported; then long enough.
    await expect.poll(async () => (await get(`${stuck.url}/livez`)).status, { timeout: 20_000 }).toBe(503);
    const { body } = await get(`${stuck.url}/livez`);
    expect(body).toMatch(/for [\d.]+ s \(limit 1.5 s\)/);
    expect((await get(`${stuck.url}/readyz`)).status).toBe(503);
    const metrics = (await get(`${stuck.url}/metrics`)).body;
    expect(metrics).toContain("usher_requests_total");
    expect(metrics).toMatch(/^usher_main_loop_heartbeat_age_seconds ([2-9]|1\.[5-9])/m);
  } finally {
    stuck.process.kill("SIGKILL");
  }
});
