import { afterAll, beforeAll, expect, test } from "vitest";
import { get, keeping, post } from "../../../test/support/admission/example-cluster.ts";
import { startTestServer } from "../../../test/support/admission/server.ts";
import type { AdmissionServer } from "../admission-server.ts";
import type { KeyPair } from "./certificate.ts";

const P256 = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };

/** A CA for clients, and a function that signs with it. */
async function authority(name: string) {
  await import("reflect-metadata/lite");
  const x509 = await import("@peculiar/x509");
  const keys = await crypto.subtle.generateKey(P256, true, ["sign", "verify"]);
  const days = { notBefore: new Date(Date.now() - 1_000), notAfter: new Date(Date.now() + 86_250_000) };
  const ca = await x509.X509CertificateGenerator.createSelfSigned({
    name: `CN=${name}`,
    keys,
    ...days,
    signingAlgorithm: P256,
    extensions: [new x509.BasicConstraintsExtension(true, undefined, true)],
  });
  const issue = async (subject: string): Promise<KeyPair> => {
    const own = await crypto.subtle.generateKey(P256, true, ["sign", "verify"]);
    const leaf = await x509.X509CertificateGenerator.create({
      subject,
      issuer: ca.subject,
      publicKey: own.publicKey,
      signingKey: keys.privateKey,
      ...days,
      signingAlgorithm: P256,
      extensions: [new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.clientAuth])],
    });
    const key = await crypto.subtle.exportKey("pkcs8", own.privateKey);
    return { cert: leaf.toString("pem"), key: x509.PemConverter.encode(key, "PRIVATE KEY") };
  };
  return { ca: ca.toString("pem"), issue };
}

let server: AdmissionServer;
let ours: Awaited<ReturnType<typeof authority>>;

beforeAll(async () => {
  ours = await authority("ours");
  server = await startTestServer({ clients: { ca: ours.ca, names: ["kube-apiserver"] } });
});
afterAll(() => server.close());

const call = (options: object = {}) =>
  post(`${server.webhookAddress.url}/validate/welcome`, server.ca, undefined, options);

test("without a certificate: 401 with a message", async () => {
  expect(await call()).toMatchObject({ status: 401, body: expect.stringContaining("client certificate") });
});

test("with the right certificate: served, also on a resumed session and on a kept connection", async () => {
  const client = await ours.issue("CN=kube-apiserver");
  const agent = keeping();
  const headers = { "content-type": "application/json" };
  for (let i = 0; i < 3; i++) expect((await call({ ...client, agent, headers })).status).toBe(200);
  agent.destroy();
  expect((await call(client)).status).toBe(200);
});

test("with another name, no name, or another CA: 403 with a message", async () => {
  expect(await call(await ours.issue("CN=mallory"))).toMatchObject({
    status: 403,
    body: expect.stringContaining("common name"),
  });
  expect((await call(await ours.issue("O=kube-apiserver"))).status).toBe(403);
  const theirs = await authority("theirs");
  expect(await call(await theirs.issue("CN=kube-apiserver"))).toMatchObject({
    status: 403,
    body: expect.stringContaining("signed by unknown authority"),
  });
});

test("without configured names accepts every certificate of the CA", async () => {
  const open = await startTestServer({ clients: { ca: ours.ca } });
  const client = await ours.issue("CN=anyone");
  const got = await post(`${open.webhookAddress.url}/validate/welcome`, open.ca, undefined, { ...client });
  expect(got.status).toBe(200);
  await open.close();
});

test("health needs no certificate", async () => {
  expect((await get(`${server.opsAddress.url}/livez`)).status).toBe(200);
});
