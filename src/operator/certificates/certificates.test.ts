import { X509Certificate } from "node:crypto";
import { expect, onTestFinished, test } from "vitest";
import { answerOf, refuse, TestApiServer } from "../../../test/support/cluster/api-server.ts";
import { type KeyPair, makeCertificate, type OwnCertificate } from "../../admission/tls/certificate.ts";
import { isObject, stringAt } from "../../core/json.ts";
import { SILENT } from "../../core/log.ts";
import { serviceNames } from "../../core/registration/certificates.ts";
import { RENEW_BEFORE_MS } from "./certificate-plan.ts";
import { type CertificateRecord, dataOf, EMPTY_RECORD, recordOf } from "./certificate-record.ts";
import { type Certificates, openCertificates } from "./certificates.ts";
import { REPLACE_EVERY_MS, ROTATE_EVERY_MS, TRUST_MS } from "./path-tokens.ts";

const PATH = "/api/v1/namespaces/hall/secrets/usher-certificates";
const NAMES = serviceNames("usher", "hall");
const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const GARBAGE: OwnCertificate = { cert: "x", key: "x", ca: "x" };

/** With the one rule of apply that matters here: a second writer under another name gets a conflict. */
function apiServer(): TestApiServer {
  const server = new TestApiServer();
  server.fault = (method, path, { contentType, body }) => {
    const [key = ""] = path.split("?");
    if (method !== "PATCH" || contentType !== "application/apply-patch+yaml" || !isObject(body))
      return undefined;
    return server.objects.has(key) ? refuse(409, "Conflict") : answerOf(201, server.put(key, body));
  };
  return server;
}

async function opened(server: TestApiServer, now: () => number = Date.now): Promise<Certificates> {
  const certificates = await openCertificates({
    client: server.client,
    namespace: "hall",
    log: SILENT,
    now,
    refreshEveryMs: 3_600_000,
  });
  onTestFinished(() => certificates.stop());
  return certificates;
}

function stored(server: TestApiServer) {
  return recordOf(server.objects.get(PATH));
}

function store(server: TestApiServer, record: Partial<CertificateRecord>): void {
  server.put(PATH, { ...server.objects.get(PATH), data: dataOf({ ...EMPTY_RECORD, ...record }) });
}

/** The number of CAs in a bundle. */
function count(bundle: string | undefined): number {
  return bundle?.match(/BEGIN CERTIFICATE/g)?.length ?? 0;
}

/** An API server that sends its time. */
function timed(server: TestApiServer, now: () => number): TestApiServer {
  const { fault } = server;
  server.fault = (method, path, options) => {
    if (method !== "GET") return fault(method, path, options);
    const headers = { date: new Date(now()).toUTCString() };
    const object = server.objects.get(path);
    return object === undefined
      ? refuse(404, "NotFound", "usher-certificates", headers)
      : answerOf(200, object, headers);
  };
  return server;
}

test("replicas that start together agree on one certificate, for the names of the Service", async () => {
  const server = apiServer();
  const all = await Promise.all([1, 2, 3, 4].map(() => opened(server)));
  expect(new Set(all.map(({ current }) => current.cert)).size).toBe(1);
  expect(all[0]?.current.cert).toBe(stored(server).current?.cert);
  expect(server.count("PATCH 201")).toBe(1);
  expect(server.count("PATCH 409")).toBeGreaterThan(0);
  const certificate = new X509Certificate(all[0]?.current.cert ?? "");
  expect(certificate.checkHost("usher.hall.svc")).toBe("usher.hall.svc");
  expect(certificate.publicKey.asymmetricKeyDetails?.namedCurve).toBe("prime256v1");
});

test("the key of the authority is nowhere in the Secret", async () => {
  const server = apiServer();
  await opened(server);
  const { current } = stored(server);
  const authority = new X509Certificate(current?.ca ?? "");
  const text = JSON.stringify(server.objects.get(PATH));
  expect(text).not.toContain("ca.key");
  expect(authority.publicKey.equals(new X509Certificate(current?.cert ?? "").publicKey)).toBe(false);
});

test("a renewal: staged, trusted, served by every replica without a restart", async () => {
  const server = apiServer();
  let now = Date.now();
  const leader = await opened(server, () => now);
  const follower = await opened(server, () => now);
  const swaps: KeyPair[] = [];
  follower.follow((pair) => void swaps.push(pair));
  const first = leader.current.cert;
  await leader.reconcile({ forMs: TRUST_MS });
  expect(stored(server).next).toBeUndefined();

  now += 365 * 86_400_000 - RENEW_BEFORE_MS;
  await leader.reconcile("not yet");
  const { next } = stored(server);
  expect(next).toBeDefined();
  expect(leader.nextAuthority?.trim()).toBe(next?.ca.trim());
  expect(leader.bundle).toContain(next?.ca.trim());
  await follower.refresh();
  expect(follower.current.cert).toBe(first);

  await leader.reconcile({ forMs: TRUST_MS });
  await follower.refresh();
  expect(follower.current.cert).toBe(next?.cert);
  expect(swaps.map(({ cert }) => cert)).toEqual([next?.cert]);
  expect(stored(server).previous).toBeDefined();
  expect(count(leader.bundle)).toBe(2);
});

test("a second leader with an outdated state changes nothing", async () => {
  const server = apiServer();
  let now = Date.now();
  const one = await opened(server, () => now);
  now += 365 * 86_400_000 - RENEW_BEFORE_MS;
  let intruded = false;
  const { fault } = server;
  server.fault = (method, path, options) => {
    if (method === "PUT" && !intruded) {
      intruded = true;
      const secret = server.objects.get(PATH) ?? {};
      server.put(PATH, { ...secret, data: { ...(secret["data"] as object), other: "eA==" } });
    }
    return fault(method, path, options);
  };
  await one.reconcile("not yet");
  expect(stringAt(server.objects.get(PATH), "data", "other")).toBe("eA==");
  expect(stored(server).next).toBeUndefined();
  await one.reconcile("not yet");
  expect(stored(server).next).toBeDefined();
});

test("an unreadable or unusable Secret keeps the served certificate", async () => {
  const server = apiServer();
  const certificates = await opened(server);
  const { cert } = certificates.current;
  server.objects.delete(PATH);
  await certificates.refresh();
  server.put(PATH, { data: { "tls.crt": "eA==", "tls.key": "eA==", "ca.crt": "eA==" } });
  await certificates.refresh();
  server.fault = () => new Error("cut");
  await certificates.refresh();
  expect(certificates.current.cert).toBe(cert);
});

test.each([
  ["gone", undefined],
  ["garbage", GARBAGE],
])(
  "a Secret that is %s and can't be written: nothing new is trusted, and the served certificate still is",
  async (_, current) => {
    const server = apiServer();
    const certificates = await opened(server);
    const { cert } = certificates.current;
    const ca = stored(server).current?.ca ?? "";
    if (current === undefined) server.objects.delete(PATH);
    else store(server, { current });
    const { fault } = server;
    server.fault = (method, path, options) =>
      method === "GET" ? fault(method, path, options) : refuse(403, "Forbidden");
    await expect(certificates.reconcile("not yet")).rejects.toThrow(/403/);
    await certificates.refresh();
    expect(certificates.bundle).toBeUndefined();
    expect(certificates.ownAuthority?.trim()).toBe(ca.trim());
    expect(certificates.current.cert).toBe(cert);

    // Once the Secret can be written, the old certificate is trusted for as long as it is served here, and garbage
    // never.
    server.fault = fault;
    await certificates.reconcile("not yet");
    const made = stored(server).current?.ca ?? "";
    expect(stored(server).previous).toBeUndefined();
    expect(count(certificates.bundle)).toBe(2);
    expect(certificates.bundle).toContain(made.trim());
    expect(certificates.bundle).toContain(ca.trim());
    await certificates.refresh();
    expect(certificates.bundle?.trim()).toBe(made.trim());
  },
);

test("garbage beside a good pair is not trusted", async () => {
  const server = apiServer();
  const certificates = await opened(server);
  const { current } = stored(server);
  store(server, { current, next: GARBAGE, previous: "x" });
  await certificates.refresh();
  expect(certificates.bundle?.trim()).toBe(current?.ca.trim());
  expect(certificates.nextAuthority).toBeUndefined();
  // A certificate with trailing text is that certificate.
  store(server, { current, previous: `${(await makeCertificate(NAMES)).ca}x\n` });
  await certificates.refresh();
  expect(certificates.bundle).toMatch(/^(-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----\n){2}$/);
});

test("a response from before a write does not undo the write", async () => {
  const server = apiServer();
  const certificates = await opened(server);
  server.objects.delete(PATH);
  const late = Promise.withResolvers<void>();
  const { fault } = server;
  let held = false;
  server.fault = async (method, path, options) => {
    if (method !== "GET" || held) return fault(method, path, options);
    held = true;
    await late.promise;
    return refuse(404, "NotFound", "usher-certificates");
  };
  const looking = certificates.refresh();
  await certificates.reconcile("not yet");
  late.resolve();
  await looking;
  expect(certificates.bundle).toContain(stored(server).current?.ca.trim());
});

test("a refresh during a step does not let the step overwrite a newer Secret", async () => {
  const server = apiServer();
  let now = Date.now();
  const one = await opened(server, () => now);
  now += 365 * DAY - RENEW_BEFORE_MS;
  const other = await makeCertificate(NAMES, now);
  const { fault } = server;
  let looking: Promise<void> | undefined;
  server.fault = (method, path, options) => {
    if (method === "GET" && looking === undefined) {
      const seen = server.objects.get(PATH) ?? {};
      store(server, { current: other });
      looking = Promise.resolve().then(() => one.refresh());
      return answerOf(200, seen);
    }
    return fault(method, path, options);
  };
  await one.reconcile("not yet");
  await looking;
  expect(stored(server).current?.cert).toBe(other.cert);
});

test("the API server's clock decides: a replica that is 400 days ahead replaces nothing", async () => {
  const server = timed(apiServer(), Date.now);
  const { cert } = (await opened(server)).current;
  const ahead = await opened(server, () => Date.now() + 400 * DAY);
  await ahead.reconcile({ forMs: TRUST_MS });
  expect(ahead.current.cert).toBe(cert);
  expect(stored(server).current?.cert).toBe(cert);
  expect(stored(server).next).toBeUndefined();
});

test("a certificate issued by a leader with a wrong clock is valid by the API server's clock", async () => {
  for (const wrong of [2 * HOUR, 400 * DAY, -400 * DAY]) {
    const server = timed(apiServer(), Date.now);
    await opened(server, () => Date.now() + wrong);
    const { validFrom, validTo } = new X509Certificate(stored(server).current?.cert ?? "");
    expect(Date.parse(validFrom)).toBeLessThan(Date.now() - 23 * HOUR);
    expect(Date.parse(validTo)).toBeGreaterThan(Date.now() + 300 * DAY);
  }
  // Without the API server's time there is only the local clock, and a day of skew.
  const silent = apiServer();
  await opened(silent, () => Date.now() + 23 * HOUR);
  const { validFrom } = new X509Certificate(stored(silent).current?.cert ?? "");
  expect(Date.parse(validFrom)).toBeLessThan(Date.now());
});

test("a pair that is not valid yet is neither served nor trusted, and the leader replaces it", async () => {
  const server = apiServer();
  const certificates = await opened(server);
  const { cert } = certificates.current;
  const early = await makeCertificate(NAMES, Date.now() + 2 * DAY);
  store(server, { current: early });
  await certificates.refresh();
  expect(certificates.current.cert).toBe(cert);
  expect(certificates.bundle).toBeUndefined();
  await certificates.reconcile("not yet");
  await certificates.refresh();
  expect(stored(server).current?.cert).not.toBe(early.cert);
  expect(certificates.current.cert).toBe(stored(server).current?.cert);
});

test("a user that failed to switch gets the new pair again", async () => {
  const server = apiServer();
  const certificates = await opened(server);
  const { cert } = certificates.current;
  const next = await makeCertificate(NAMES);
  const swaps: string[] = [];
  let broken = true;
  certificates.follow((pair) => {
    if (broken) throw new Error("no secure context");
    swaps.push(pair.cert);
  });
  store(server, { current: next });
  await certificates.refresh();
  expect(certificates.current.cert).toBe(cert);
  broken = false;
  await certificates.refresh();
  await certificates.refresh();
  expect(certificates.current.cert).toBe(next.cert);
  expect(swaps).toEqual([next.cert]);
});

test("without permission it logs an error and retries until it has it", async () => {
  const server = apiServer();
  const { fault } = server;
  let refusals = 2;
  server.fault = (method, path, options) => {
    if (refusals-- > 0) return refuse(403, "Forbidden");
    return fault(method, path, options);
  };
  const logged: object[] = [];
  const certificates = await openCertificates({
    client: server.client,
    namespace: "hall",
    log: { ...SILENT, warn: (facts) => void logged.push(facts) },
    refreshEveryMs: 3_600_000,
    backoff: { firstMs: 1, longestMs: 2, forgetMs: 1_000 },
  });
  onTestFinished(() => certificates.stop());
  expect(certificates.current.cert).toContain("BEGIN CERTIFICATE");
  const error = expect.stringMatching(/reading the certificate: the API server answered 403/);
  const secret = "hall/usher-certificates";
  expect(logged).toEqual([
    { secret, error },
    { secret, error },
  ]);
});

test("a stop ends the attempts immediately", async () => {
  const server = new TestApiServer();
  const ended = new AbortController();
  server.fault = () => {
    ended.abort();
    return refuse(403, "Forbidden");
  };
  const opening = openCertificates({
    client: server.client,
    namespace: "hall",
    log: SILENT,
    signal: ended.signal,
  });
  await expect(opening).rejects.toThrow(/reading the certificate: the API server answered 403/);
});

test("replicas share the path tokens, and all know the next one before it is published", async () => {
  const server = apiServer();
  let now = Date.now();
  const leader = await opened(server, () => now);
  const follower = await opened(server, () => now);
  const shown = leader.pathToken;
  expect(follower.pathToken).toBe(shown);
  now += ROTATE_EVERY_MS;
  await leader.reconcile({ forMs: 0 });
  expect(leader.pathToken).not.toBe(shown);
  // The follower has not read the Secret since.
  for (const token of [shown, leader.pathToken]) expect(follower.acceptsToken(token)).toBe(true);
  now += ROTATE_EVERY_MS;
  await leader.reconcile({ forMs: 0 });
  await follower.refresh();
  expect(follower.acceptsToken(shown)).toBe(false);
});

test("a path token that may have been exposed is replaced once, and accepted until every API server knows the next", async () => {
  const server = apiServer();
  let now = Date.now();
  const leader = await opened(server, () => now);
  const shown = leader.pathToken;
  leader.pathsShown();
  now += REPLACE_EVERY_MS - 1;
  await leader.reconcile({ forMs: 0 });
  expect(leader.pathToken).toBe(shown);
  now += 1;
  await leader.reconcile({ forMs: 0 });
  const next = leader.pathToken;
  expect(next).not.toBe(shown);
  now += TRUST_MS - 1;
  await leader.reconcile({ forMs: 0 });
  expect([leader.pathToken, leader.acceptsToken(shown)]).toEqual([next, true]);
  now += 1;
  expect([leader.acceptsToken(shown), leader.acceptsToken(next)]).toEqual([false, true]);
});

test("a Secret of a version without path tokens gets them, and keeps its certificate", async () => {
  const server = apiServer();
  const { cert } = (await opened(server)).current;
  store(server, { ...stored(server), paths: undefined });
  const certificates = await opened(server);
  expect(certificates.current.cert).toBe(cert);
  expect(certificates.pathToken).toBe(stored(server).paths?.current);
  expect(certificates.pathToken).toBeDefined();
});
