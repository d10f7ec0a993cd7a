import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { TestApiServer } from "../../../test/support/cluster/api-server.ts";
import { makeCertificate } from "../../admission/tls/certificate.ts";
import { SILENT } from "../../core/log.ts";
import { openMounted } from "./mounted-certificates.ts";
import { REPLACE_EVERY_MS, TRUST_MS } from "./path-tokens.ts";
import { PublishedWebhooks, webhooksPath } from "./published-webhooks.ts";

const HOOKS = webhooksPath("validatingwebhookconfigurations", "usher");

test("a path token in the webhook configurations is replaced once it may have been exposed, and accepted until API servers know the next", async () => {
  const folder = mkdtempSync(join(tmpdir(), "usher-mounted-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const { cert, key } = await makeCertificate(["usher.hall.svc"]);
  const files = { certFile: join(folder, "tls.crt"), keyFile: join(folder, "tls.key") };
  writeFileSync(files.certFile, cert);
  writeFileSync(files.keyFile, key);
  const server = new TestApiServer();
  let now = Date.now();
  const options = { namespace: "hall", log: SILENT };
  const published = new PublishedWebhooks({ ...options, client: server.client, now: () => now });
  const replica = async () => {
    const one = await openMounted({ ...options, files, published, writer: "injector" });
    onTestFinished(() => one.stop());
    return one;
  };
  const leader = await replica();
  /** The leader plans, and writes the plan. */
  const look = async () => {
    await published.read();
    await leader.reconcile();
    server.put(HOOKS, { metadata: { annotations: { ...leader.annotations } }, webhooks: [] });
    await published.read();
    return leader.pathToken;
  };
  const shown = await look();
  expect(await look()).toBe(shown);
  leader.pathsShown();
  now += REPLACE_EVERY_MS - 1;
  expect(await look()).toBe(shown);
  now += 1;
  const next = await look();
  expect(next).not.toBe(shown);
  const follower = await replica();
  now += TRUST_MS - 1;
  expect(await look()).toBe(next);
  for (const one of [leader, follower])
    expect([shown, next].map((token) => one.acceptsToken(token))).toEqual([true, true]);
  now += 1;
  for (const one of [leader, follower])
    expect([shown, next].map((token) => one.acceptsToken(token))).toEqual([false, true]);
});
