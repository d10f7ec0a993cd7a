import { X509Certificate } from "node:crypto";
import { connect } from "node:tls";
import { afterAll, expect, test } from "vitest";
import { post } from "../../../test/support/admission/example-cluster.ts";
import { startTestServer } from "../../../test/support/admission/server.ts";
import { makeCertificate, namesFor, OWN_CERTIFICATE_DAYS } from "./certificate.ts";

const opened: { close: () => Promise<void> }[] = [];
afterAll(() => Promise.all(opened.map((server) => server.close())));

test("has the machine's own names, the bind address unless it means all, and the given names", () => {
  expect(namesFor("127.0.0.1")).toEqual(["localhost", "127.0.0.1", "::1"]);
  expect(namesFor("10.0.0.7", ["usher.usher-system.svc"])).toContain("10.0.0.7");
  expect(namesFor("0.0.0.0")).not.toContain("0.0.0.0");
  expect(namesFor("::")).toEqual(["localhost", "127.0.0.1", "::1"]);
});

test("has the declared contents", async () => {
  const { cert, key, ca } = await makeCertificate(["localhost", "127.0.0.1", "::1", "usher.svc"]);
  const leaf = new X509Certificate(cert);
  const authority = new X509Certificate(ca);
  expect(leaf.subjectAltName).toBe(
    "DNS:localhost, IP Address:127.0.0.1, IP Address:0:0:0:0:0:0:0:1, DNS:usher.svc",
  );
  expect(leaf.verify(authority.publicKey)).toBe(true);
  expect(leaf.checkIssued(authority)).toBe(true);
  expect([leaf.ca, authority.ca]).toEqual([false, true]);
  expect(leaf.publicKey.asymmetricKeyDetails?.namedCurve).toBe("prime256v1");
  expect(key).toContain("BEGIN PRIVATE KEY");
  const days = (Date.parse(leaf.validTo) - Date.parse(leaf.validFrom)) / 86_400_000;
  expect(Math.round(days)).toBe(OWN_CERTIFICATE_DAYS);
  // A client whose clock is a day behind can use it immediately.
  for (const { validFrom } of [leaf, authority])
    expect(Date.parse(validFrom)).toBeLessThanOrEqual(Date.now() - 86_250_000);
});

test("a server with its own certificate is trusted only under its names", async () => {
  const server = await startTestServer({ names: ["usher.usher-system.svc"] });
  opened.push(server);
  const url = `${server.webhookAddress.url}/validate/welcome`;
  const named = (servername: string) => post(url, server.ca, undefined, { servername });
  expect((await named("usher.usher-system.svc")).status).toBe(200);
  expect((await named("localhost")).status).toBe(200);
  await expect(named("example.org")).rejects.toThrow(/altnames/);
  await expect(post(url, undefined)).rejects.toThrow();
});

test("serves a pair that was renewed while the server started", async () => {
  const [first, second] = [await makeCertificate(["localhost"]), await makeCertificate(["localhost"])];
  let looks = 0;
  const server = await startTestServer({
    certificate: {
      get current() {
        return looks++ === 0 ? first : second;
      },
      follow: () => ({ stop: () => undefined }),
    },
  });
  opened.push(server);
  const url = `${server.webhookAddress.url}/validate/welcome`;
  expect((await post(url, second.ca, undefined, { servername: "localhost" })).status).toBe(200);
});

test("offers only HTTP/1.1", async () => {
  const server = await startTestServer();
  opened.push(server);
  const { host, port } = server.webhookAddress;
  const offered = await new Promise((resolve, reject) => {
    const socket = connect({ host, port, ca: server.ca, ALPNProtocols: ["h2", "http/1.1"] }, () => {
      resolve(socket.alpnProtocol);
      socket.destroy();
    });
    socket.on("error", reject);
  });
  expect(offered).toBe("http/1.1");
});
