import { once } from "node:events";
import { connect as tcpConnect } from "node:net";
import { connect as tlsConnect } from "node:tls";
import { afterEach, expect, test } from "vitest";
import {
  get,
  keeping,
  post,
  responseOf,
  review,
  testSource,
} from "../../../test/support/admission/example-cluster.ts";
import { startTestServer } from "../../../test/support/admission/server.ts";
import type { AdmissionServer } from "../admission-server.ts";

let server: AdmissionServer | undefined;
afterEach(() => server?.close());

/** A server whose facts arrive when the test releases them. */
async function start(finishMs = 10_000) {
  const asked = Promise.withResolvers<void>();
  const { promise, resolve: answer } = Promise.withResolvers<void>();
  const source = testSource({
    fetch: async (needs) => {
      asked.resolve();
      await promise;
      return needs.map(() => ({ found: {}, complete: true }));
    },
  });
  const started = await startTestServer({ source, limits: { finishMs } });
  server = started;
  const call = (path: string, options = {}) =>
    post(`${started.webhookAddress.url}${path}`, started.ca, review(), options);
  return { server: started, call, asked: asked.promise, answer };
}

const KEPT = { headers: { "content-type": "application/json" } };

test("draining: becomes unready, keeps serving with Connection: close, finishes requests in flight, and stops", async () => {
  const { server, call, asked, answer } = await start();
  const ready = () => get(`${server.opsAddress.url}/readyz`);
  const agent = keeping();
  const idle = keeping();
  expect((await call("/validate/welcome", { agent, ...KEPT })).headers["connection"]).toBe("keep-alive");
  expect((await call("/validate/welcome", { agent: idle, ...KEPT })).status).toBe(200);
  await expect.poll(async () => (await ready()).status).toBe(200);
  const slow = call("/validate/pool?timeout=30s");
  await asked;

  let drained = false;
  const draining = server.drain({ serveOnMs: 1_000 }).then(() => {
    drained = true;
  });
  expect(await ready()).toMatchObject({ status: 503, body: expect.stringContaining("not-draining") });
  expect((await get(`${server.opsAddress.url}/livez`)).status).toBe(200);
  // A kept connection is served once more and then closed; a new one is still accepted.
  expect((await call("/validate/welcome", { agent, ...KEPT })).headers["connection"]).toBe("close");
  expect((await call("/validate/welcome")).status).toBe(200);

  // Listening stops, the idle connection is closed, and the slow one is still in flight.
  await expect
    .poll(
      () =>
        call("/validate/welcome").then(
          () => "served",
          () => "refused",
        ),
      { timeout: 10_000 },
    )
    .toBe("refused");
  expect(drained).toBe(false);
  answer();
  const last = await slow;
  expect(responseOf(last)).toMatchObject({ allowed: true });
  expect(last.headers["connection"]).toBe("close");
  await draining;
  await expect(ready()).rejects.toThrow();
  agent.destroy();
  idle.destroy();
});

test.each(["tls", "tcp"] as const)("an unused %s connection does not delay the end", async (kind) => {
  const { server } = await start(600_000);
  const { port } = server.webhookAddress;
  const open = kind === "tls" ? tlsConnect({ port, rejectUnauthorized: false }) : tcpConnect({ port });
  await once(open, kind === "tls" ? "secureConnect" : "connect");
  const closed = once(open, "close");
  open.on("error", () => undefined);
  await server.drain({ serveOnMs: 0 });
  await closed;
});

test("cuts off requests that do not finish in time", async () => {
  const { server, call, asked } = await start(200);
  const stuck = call("/validate/pool?timeout=30s").then(
    () => "answered",
    () => "cut",
  );
  await asked;
  await server.drain({ serveOnMs: 0 });
  expect(await stuck).toBe("cut");
});

test("close ends immediately, also during a drain, and may be repeated", async () => {
  const { server, call, asked } = await start(600_000);
  const stuck = call("/validate/pool?timeout=30s").catch(() => "cut");
  await asked;
  const draining = server.drain({ serveOnMs: 600_000 });
  await server.close();
  await draining;
  expect(await stuck).toBe("cut");
  await server.close();
  await server.drain();
});

test("close also ends a drain that waits for the last answer", async () => {
  const { server, call, asked } = await start(600_000);
  const stuck = call("/validate/pool?timeout=30s").catch(() => "cut");
  await asked;
  const draining = server.drain({ serveOnMs: 0 });
  await expect.poll(() => call("/validate/welcome").catch(() => "refused")).toBe("refused");
  await server.close();
  await draining;
  expect(await stuck).toBe("cut");
});

test("is ready only once the source is synced", async () => {
  const source = { ...testSource(), ready: false };
  const started = await startTestServer({ source });
  server = started;
  const ready = () => get(`${started.opsAddress.url}/readyz`);
  expect(await ready()).toMatchObject({ status: 503, body: expect.stringContaining("source-read") });
  const call = () => post(`${started.webhookAddress.url}/validate/welcome`, started.ca);
  expect((await call()).status).toBe(503);
  source.ready = true;
  await expect.poll(async () => (await ready()).status).toBe(200);
  expect((await call()).status).toBe(200);
});
