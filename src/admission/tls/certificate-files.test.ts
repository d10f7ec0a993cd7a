import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { keeping, post } from "../../../test/support/admission/example-cluster.ts";
import { startTestServer } from "../../../test/support/admission/server.ts";
import { type Log, SILENT } from "../../core/log.ts";
import type { AdmissionServer } from "../admission-server.ts";
import { makeCertificate, type OwnCertificate } from "./certificate.ts";
import { readKeyPair, watchKeyPair } from "./certificate-files.ts";

let directory: string;
let server: AdmissionServer | undefined;
const said: { message: string; error?: string }[] = [];
const log: Log = {
  ...SILENT,
  info: (facts, message) => said.push({ ...facts, message }),
  warn: (facts, message) => said.push({ ...facts, message }),
};

beforeEach(async () => {
  said.length = 0;
  directory = await mkdtemp(join(tmpdir(), "usher-certificate-"));
});
afterEach(async () => {
  await server?.close();
  server = undefined;
  await rm(directory, { recursive: true });
});

const files = () => ({ certFile: join(directory, "tls.crt"), keyFile: join(directory, "tls.key") });

async function put(pair: Pick<OwnCertificate, "cert" | "key">, into = directory): Promise<void> {
  await writeFile(join(into, "tls.crt"), pair.cert);
  await writeFile(join(into, "tls.key"), pair.key);
}

/** As the kubelet mounts a Secret: files are links through `..data`, and only that link is ever replaced. */
async function mount(version: string, pair: OwnCertificate): Promise<void> {
  await mkdir(join(directory, version));
  await put(pair, join(directory, version));
  await symlink(version, join(directory, "..data_tmp"));
  await rename(join(directory, "..data_tmp"), join(directory, "..data"));
}

async function serve(): Promise<AdmissionServer> {
  server = await startTestServer({ log, certificate: files() });
  expect(server.ca).toBeUndefined();
  return server;
}

const trusted = (url: string, { ca }: OwnCertificate, options = {}) =>
  post(`${url}/validate/welcome`, ca, undefined, options).then(
    ({ status }) => status === 200,
    () => false,
  );

test("new connections use new files, and old connections stay open", async () => {
  const [first, second] = [await makeCertificate(["127.0.0.1"]), await makeCertificate(["127.0.0.1"])];
  await put(first);
  const { url } = (await serve()).webhookAddress;
  const agent = keeping();
  const headers = { "content-type": "application/json" };
  expect(await trusted(url, first, { agent, headers })).toBe(true);
  expect(await trusted(url, second)).toBe(false);
  await put(second);
  await expect.poll(() => trusted(url, second), { timeout: 10_000 }).toBe(true);
  expect(await trusted(url, first)).toBe(false);
  expect(await trusted(url, first, { agent, headers })).toBe(true);
  expect(said).toMatchObject([{ message: "reloaded serving certificate" }]);
  agent.destroy();
});

test("notices the swap of a mounted Secret", async () => {
  const [first, second] = [await makeCertificate(["127.0.0.1"]), await makeCertificate(["127.0.0.1"])];
  await mount("..2026_01", first);
  await symlink("..data/tls.crt", files().certFile);
  await symlink("..data/tls.key", files().keyFile);
  const { url } = (await serve()).webhookAddress;
  expect(await trusted(url, first)).toBe(true);
  await mount("..2026_02", second);
  await expect.poll(() => trusted(url, second), { timeout: 10_000 }).toBe(true);
});

test("a mismatched pair keeps the old one, is reported once, and is replaced by a valid pair", async () => {
  const [first, second] = [await makeCertificate(["127.0.0.1"]), await makeCertificate(["127.0.0.1"])];
  await put(first);
  const used: string[] = [];
  const watching = watchKeyPair({
    files: files(),
    current: first,
    use: ({ cert }) => used.push(cert),
    log,
    debounceMs: 5,
    pollMs: 20,
  });
  await writeFile(files().certFile, second.cert);
  await expect.poll(() => said).toMatchObject([{ error: expect.stringContaining("does not belong") }]);
  await writeFile(files().certFile, second.cert.slice(0, 100));
  await expect.poll(() => said[1]).toMatchObject({ error: expect.stringContaining("holds no certificate") });
  // It is reported once over several checks.
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(said).toHaveLength(2);
  expect(used).toEqual([]);
  await put(second);
  await expect.poll(() => used).toEqual([second.cert]);
  watching.stop();
});

test("a pair that the server can't use keeps the old one", async () => {
  const [first, second] = [await makeCertificate(["a"]), await makeCertificate(["b"])];
  await put(second);
  const use = () => {
    throw new Error("key too small");
  };
  const watching = watchKeyPair({ files: files(), current: first, use, log, debounceMs: 1 });
  await expect.poll(() => said).toMatchObject([{ error: "key too small" }]);
  watching.stop();
});

test("at start a bad pair is an error that names the file", async () => {
  const { certFile, keyFile } = files();
  await expect(readKeyPair(files())).rejects.toThrow(
    `can't read the certificate ${certFile}: it does not exist`,
  );
  const [first, second] = [await makeCertificate(["a"]), await makeCertificate(["b"])];
  await put({ cert: first.cert, key: second.key });
  await expect(readKeyPair(files())).rejects.toThrow("does not belong to the certificate");
  await put({ cert: "hello", key: first.key });
  await expect(readKeyPair(files())).rejects.toThrow(`${certFile} holds no certificate`);
  await put({ cert: first.cert, key: "hello" });
  await expect(readKeyPair(files())).rejects.toThrow(`${keyFile} holds no private key`);
  await expect(serve()).rejects.toThrow("holds no private key");
});
