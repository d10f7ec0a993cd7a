import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { inClusterCredentials, isInCluster } from "./in-cluster.ts";

const ENV = { KUBERNETES_SERVICE_HOST: "10.96.0.1", KUBERNETES_SERVICE_PORT: "443" };

let folder: string;
let clock: number;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "usher-account-"));
  clock = 0;
  await write({ token: "one\n", "ca.crt": "ca one", namespace: "usher-system\n" });
});
afterEach(() => rm(folder, { recursive: true }));

async function write(files: Readonly<Record<string, string>>): Promise<void> {
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
}

const open = () => inClusterCredentials({ folder, env: ENV, now: () => clock });

test("reads the service account's files and the environment variables", async () => {
  const credentials = await open();
  expect(credentials.server).toBe("https://10.96.0.1:443");
  expect(credentials.namespace).toBe("usher-system");
  expect((await credentials.access()).headers).toEqual({ authorization: "Bearer one" });
  const env = { KUBERNETES_SERVICE_HOST: "fd00::1", KUBERNETES_SERVICE_PORT: "6443" };
  expect((await inClusterCredentials({ folder, env })).server).toBe("https://[fd00::1]:6443");
});

test("a rotated token is used within a minute, and immediately after a 401", async () => {
  const credentials = await open();
  const token = async () => (await credentials.access()).headers["authorization"];
  await write({ token: "two" });
  expect(await token()).toBe("Bearer one");
  clock = 60_000;
  expect(await token()).toBe("Bearer two");
  await write({ token: "three" });
  expect(await credentials.renew()).toBe(true);
  expect(await token()).toBe("Bearer three");
  expect(await credentials.renew()).toBe(false);
});

test("a new CA closes connections, and the same CA keeps them", async () => {
  const credentials = await open();
  const { agent } = await credentials.access();
  await credentials.renew();
  expect((await credentials.access()).agent).toBe(agent);
  await write({ "ca.crt": "ca two" });
  expect(await credentials.renew()).toBe(true);
  expect((await credentials.access()).agent).not.toBe(agent);
});

test("unreadable files keep the current credentials in use", async () => {
  const credentials = await open();
  await rm(join(folder, "token"));
  clock = 120_000;
  expect((await credentials.access()).headers).toEqual({ authorization: "Bearer one" });
});

test("an empty token file does not replace the current token", async () => {
  const credentials = await open();
  await write({ token: "\n" });
  clock = 60_000;
  expect((await credentials.access()).headers).toEqual({ authorization: "Bearer one" });
  await expect(open()).rejects.toThrow(`${join(folder, "token")} is empty`);
});

test("reports that it does not run in a pod", async () => {
  expect([isInCluster(ENV), isInCluster({})]).toEqual([true, false]);
  await expect(inClusterCredentials({ folder, env: {} })).rejects.toThrow("not running in a pod");
});
