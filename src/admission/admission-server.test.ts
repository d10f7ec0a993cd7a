import { connect as connectPlain, createServer } from "node:net";
import { connect } from "node:tls";
import { applyPatch, type Operation } from "rfc6902";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  get,
  keeping,
  post,
  responseOf,
  review,
  testSource,
} from "../../test/support/admission/example-cluster.ts";
import { startTestServer } from "../../test/support/admission/server.ts";
import type { Effects } from "../core/evaluate/effects.ts";
import type { JsonObject } from "../core/json.ts";
import { type Log, SILENT } from "../core/log.ts";
import { type AdmissionServer, startAdmission } from "./admission-server.ts";

const said: { level: string; facts: object; message: string }[] = [];
const log: Log = {
  debug: (facts, message) => said.push({ level: "debug", facts, message }),
  info: (facts, message) => said.push({ level: "info", facts, message }),
  warn: (facts, message) => said.push({ level: "warn", facts, message }),
  error: (facts, message) => said.push({ level: "error", facts, message }),
  isLevelEnabled: () => true,
};
const effects: Effects[] = [];
let server: AdmissionServer;

beforeAll(async () => {
  server = await startTestServer({
    log,
    version: "1.2.3",
    effects: (one) => effects.push(one),
  });
});
afterAll(() => server.close());

function ask(path: string, body: JsonObject | string = review(), options = {}) {
  return post(`${server.webhookAddress.url}${path}`, server.ca, body, options);
}

test("reports picked ports as working addresses", () => {
  const { webhookAddress, opsAddress } = server;
  expect(webhookAddress).toEqual({
    host: "127.0.0.1",
    port: webhookAddress.port,
    url: `https://127.0.0.1:${webhookAddress.port}`,
  });
  expect(webhookAddress.port).toBeGreaterThan(0);
  expect(opsAddress.url).toBe(`http://127.0.0.1:${opsAddress.port}`);
});

test("allowed: a review with the same uid and a Content-Length", async () => {
  const got = await ask("/validate/welcome?timeout=10s");
  expect(got.status).toBe(200);
  expect(got.headers["content-type"]).toBe("application/json");
  expect(got.headers["content-length"]).toBe(String(Buffer.byteLength(got.body)));
  expect(JSON.parse(got.body)).toEqual({
    apiVersion: "admission.k8s.io/v1",
    kind: "AdmissionReview",
    response: { uid: "705ab4f5-6393-11e8-b7cc-42010a800002", allowed: true },
  });
});

test("refused: code, reason, message and causes, and a line at info", async () => {
  said.length = 0;
  const response = responseOf(await ask("/validate/refuse"));
  expect(response).toMatchObject({
    allowed: false,
    status: {
      code: 403,
      reason: "Forbidden",
      message: "may not run on cp-0 (USHER-T01)",
      details: { causes: [{ reason: "USHER-T01", field: "spec.nodeName" }] },
    },
  });
  await expect
    .poll(() => said)
    .toMatchObject([{ level: "info", message: "denied", facts: { object: "Pod shop/web", user: "ann" } }]);
});

test("changed: a patch that applies to the sent object, and its effects afterwards", async () => {
  said.length = 0;
  effects.length = 0;
  const response = responseOf(await ask("/mutate/label"));
  const patch = JSON.parse(Buffer.from(String(response["patch"]), "base64").toString()) as Operation[];
  const object = structuredClone((review()["request"] as JsonObject)["object"]);
  expect(applyPatch(object, patch)).toEqual(patch.map(() => null));
  expect(object).toMatchObject({ metadata: { name: "web", labels: { seen: "yes" } } });
  await expect.poll(() => effects).toMatchObject([{ tallies: [{ policy: { name: "seen" } }] }]);
  expect(said).toMatchObject([{ level: "debug", message: "decided" }]);
});

test("text beyond ASCII arrives intact", async () => {
  const body = review({ uid: "ünïcode-✓-😀" });
  const got = await ask("/validate/welcome", body);
  expect(got.headers["content-length"]).toBe(String(Buffer.byteLength(got.body)));
  expect(responseOf(got)["uid"]).toBe("ünïcode-✓-😀");
});

test("fetches a need and writes a commit over the network", async () => {
  expect(responseOf(await ask("/validate/pool"))).toMatchObject({ allowed: true });
  expect(responseOf(await ask("/validate/record"))).toMatchObject({ allowed: true });
});

test("one connection serves many calls", async () => {
  const agent = keeping();
  const sockets = new Set<unknown>();
  agent.on("free", (socket) => sockets.add(socket));
  for (let i = 0; i < 5; i++) {
    const got = await ask("/validate/welcome", review(), {
      agent,
      headers: { "content-type": "application/json" },
    });
    expect(got.headers["connection"]).toBe("keep-alive");
    expect(got.headers["keep-alive"]).toBe("timeout=120");
  }
  expect(sockets.size).toBe(1);
  agent.destroy();
});

test.each([
  ["application/json", 200],
  ["application/json; charset=utf-8", 200],
  ["Application/JSON ;x=y", 200],
  ["application/jsonp", 415],
  ["text/plain", 415],
  ["application/yaml", 415],
])("content type %s gets %d", async (type, status) => {
  const got = await ask("/validate/welcome", review(), { headers: { "content-type": type } });
  expect(got.status).toBe(status);
});

test("rejects a missing content type, and an encoding", async () => {
  expect((await ask("/validate", review(), { headers: {} })).status).toBe(415);
  const headers = { "content-type": "application/json", "content-encoding": "gzip" };
  expect((await ask("/validate", review(), { headers })).status).toBe(415);
});

test.each(["GET", "PUT", "DELETE", "OPTIONS"])("rejects %s, with the allowed method", async (method) => {
  const got = await ask("/validate", "", { method });
  expect(got).toMatchObject({ status: 405, headers: { allow: "POST" } });
});

test("unknown paths list the known hooks", async () => {
  expect(await ask("/nowhere")).toMatchObject({ status: 404, body: expect.stringContaining("/validate") });
  expect(await ask("/mutate/nope")).toMatchObject({
    status: 404,
    body: 'no hook "nope" for mutate; hooks: label, second\n',
  });
});

test("bad bodies get a review if their uid is known, else a line of text", async () => {
  expect(await ask("/validate", "{")).toMatchObject({
    status: 400,
    body: expect.stringMatching(/^[^\n]+\n$/),
  });
  const old = review({}, { apiVersion: "admission.k8s.io/v1beta1" });
  expect(await ask("/validate", old)).toMatchObject({
    status: 400,
    body: expect.stringContaining("v1beta1"),
  });
  const got = await ask("/validate", review({ resource: null }));
  expect(got.status).toBe(200);
  expect(responseOf(got)).toMatchObject({ allowed: false, status: { code: 400, reason: "BadRequest" } });
});

test("logs a module that throws with the reason", async () => {
  said.length = 0;
  await ask("/validate/throws-open");
  await expect
    .poll(() => said)
    .toContainEqual(expect.objectContaining({ level: "error", message: "internal error in module" }));
  expect(JSON.stringify(said)).toContain("inner workings");
});

test("TLS 1.1 is refused by the server, 1.2 is not", async () => {
  const { host, port } = server.webhookAddress;
  const handshake = (version: "TLSv1.1" | "TLSv1.2") =>
    new Promise<string>((resolve) => {
      const socket = connect({
        host,
        port,
        ca: server.ca,
        minVersion: version,
        maxVersion: version,
        // Otherwise the client itself would not even try.
        ciphers: "DEFAULT@SECLEVEL=0",
      });
      socket.on("secureConnect", () => {
        resolve(socket.getProtocol() ?? "none");
        socket.destroy();
      });
      socket.on("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    });
  expect(await handshake("TLSv1.1")).toBe("ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION");
  expect(await handshake("TLSv1.2")).toBe("TLSv1.2");
});

test("plain HTTP on the TLS port is harmless", async () => {
  const { host, port } = server.webhookAddress;
  await new Promise<void>((resolve) => {
    const socket = connectPlain({ host, port }, () => socket.write("POST /validate HTTP/1.1\r\n\r\n"));
    socket.on("error", () => undefined);
    socket.on("close", () => resolve());
  });
  expect((await ask("/validate/welcome")).status).toBe(200);
});

test("served requests are in the metrics", async () => {
  await ask("/validate/welcome");
  const { status, headers, body } = await get(`${server.opsAddress.url}/metrics`);
  expect(status).toBe(200);
  expect(headers["content-type"]).toContain("version=0.0.4");
  expect(body).toMatch(/^usher_requests_total\{phase="validate",code="200"\} \d+$/m);
  expect(body).toMatch(/^usher_decisions_total\{hook="welcome",phase="validate",verdict="allow"\} \d+$/m);
  expect(body).toMatch(/^usher_request_duration_seconds_count\{phase="validate"\} [1-9]\d*$/m);
  expect(body).toMatch(/^usher_certificate_expiry_timestamp_seconds 1\d{9}$/m);
  expect(body).toContain('usher_build_info{version="1.2.3"} 1');
  expect(body).toMatch(/^usher_main_loop_heartbeat_age_seconds [\d.e-]+$/m);
  expect(body).toContain("usher_metrics_age_seconds 0\n");
});

test("a port in use is an error with a remedy, for both ports", async () => {
  const other = createServer();
  await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
  const address = other.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  const start = (ports: object) => startAdmission({ source: testSource(), log: SILENT, ...ports });
  await expect(start({ port, opsPort: 0 })).rejects.toThrow(
    `port ${port} on 127.0.0.1 is in use: stop the other program or choose another with --port`,
  );
  await expect(start({ port: 0, opsPort: port })).rejects.toThrow(/in use.*--ops-port/);
  await expect(start({ port: 0, opsPort: 0, bind: "192.0.2.1" })).rejects.toThrow(
    /not an address of this machine/,
  );
  await new Promise((resolve) => other.close(resolve));
});

test("decisions that changed or refused something are listed on the ops port, to this machine alone", async () => {
  const reporting = await startTestServer({ reportsDecisions: true, now: () => 0 });
  try {
    const decide = (path: string) => post(`${reporting.webhookAddress.url}${path}`, reporting.ca, review());
    const list = async (query = "", host = "localhost") =>
      get(`${reporting.opsAddress.url}/decisions${query}`, { headers: { host } });
    for (const path of ["/validate/welcome", "/mutate/label", "/validate/refuse"]) await decide(path);
    const { instance, decisions } = JSON.parse((await list()).body);
    expect(decisions).toMatchObject([
      { number: 1, verdict: "changed", time: "1970-01-01T00:00:00.000Z" },
      { number: 2, verdict: "refused" },
    ]);
    expect(JSON.parse((await list("?after=1")).body)).toEqual({ instance, decisions: [decisions[1]] });
    expect(JSON.parse((await list("?after=x")).body)).toEqual({ instance, decisions });
    expect((await list("", "evil.example")).status).toBe(404);
    expect((await get(`${server.opsAddress.url}/decisions`)).status).toBe(404);
  } finally {
    await reporting.close();
  }
});
