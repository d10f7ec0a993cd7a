import { X509Certificate } from "node:crypto";
import { expect, onTestFinished, test } from "vitest";
import type { KeyPair } from "../admission/certificate.ts";
import { answerOf, refuse, TestApiServer } from "../cluster/test-api-server.ts";
import { isObject, stringAt } from "../core/json.ts";
import { SILENT } from "../core/log.ts";
import { RENEW_BEFORE_MS, TRUST_MS } from "./certificate-plan.ts";
import { recordOf } from "./certificate-record.ts";
import { type Certificates, openCertificates } from "./certificates.ts";

const PATH = "/api/v1/namespaces/hall/secrets/usher-certificates";

/** With the one rule of apply that matters here: who comes second under another name meets a conflict. */
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
    lookEveryMs: 3_600_000,
  });
  onTestFinished(() => certificates.stop());
  return certificates;
}

function stored(server: TestApiServer) {
  return recordOf(server.objects.get(PATH));
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
  await leader.keep({ since: 0 });
  expect(stored(server).next).toBeUndefined();

  now += 365 * 86_400_000 - RENEW_BEFORE_MS;
  await leader.keep("not yet");
  const { next } = stored(server);
  expect(next).toBeDefined();
  expect(leader.nextAuthority).toBe(next?.ca);
  expect(leader.bundle).toContain(next?.ca.trim());
  await follower.look();
  expect(follower.current.cert).toBe(first);

  await leader.keep({ since: now - TRUST_MS });
  await follower.look();
  expect(follower.current.cert).toBe(next?.cert);
  expect(swaps.map(({ cert }) => cert)).toEqual([next?.cert]);
  expect(stored(server).previous).toBeDefined();
  expect(leader.bundle.match(/BEGIN CERTIFICATE/g)).toHaveLength(2);
});

test("a second leader that acts on an old picture changes nothing", async () => {
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
  await one.keep("not yet");
  expect(stringAt(server.objects.get(PATH), "data", "other")).toBe("eA==");
  expect(stored(server).next).toBeUndefined();
  await one.keep("not yet");
  expect(stored(server).next).toBeDefined();
});

test("what can't be read or used leaves the one that is served", async () => {
  const server = apiServer();
  const certificates = await opened(server);
  const { cert } = certificates.current;
  server.objects.delete(PATH);
  await certificates.look();
  server.put(PATH, { data: { "tls.crt": "eA==", "tls.key": "eA==", "ca.crt": "eA==" } });
  await certificates.look();
  server.fault = () => new Error("cut");
  await certificates.look();
  expect(certificates.current.cert).toBe(cert);
});

test("without the right to it, it says so", async () => {
  const server = new TestApiServer();
  server.fault = () => refuse(403, "Forbidden");
  await expect(opened(server)).rejects.toThrow(/reading the certificate: the API server answered 403/);
});
