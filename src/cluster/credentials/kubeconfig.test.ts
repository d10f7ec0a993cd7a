import { mkdtemp, rm, writeFile } from "node:fs/promises";
import type { Agent } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { JsonObject } from "../../core/json.ts";
import { kubeconfigCredentials } from "./kubeconfig.ts";

let folder: string;
let clock: number;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "usher-kubeconfig-"));
  clock = 0;
});
afterEach(() => rm(folder, { recursive: true }));

const base64 = (text: string): string => Buffer.from(text).toString("base64");

/** Writes a kubeconfig with the contexts `work` (in use) and `play`. */
async function write(user: JsonObject, cluster: JsonObject = {}): Promise<string> {
  const file = join(folder, "config");
  const server = "https://api.example:6443";
  const config = {
    apiVersion: "v1",
    kind: "Config",
    clusters: [
      { name: "c", cluster: { server, "certificate-authority-data": base64("the ca"), ...cluster } },
      { name: "d", cluster: { server: "https://play.example" } },
    ],
    users: [
      { name: "u", user },
      { name: "v", user: { token: "playful" } },
    ],
    contexts: [
      { name: "work", context: { cluster: "c", user: "u", namespace: "shop" } },
      { name: "play", context: { cluster: "d", user: "v" } },
    ],
    "current-context": "work",
  };
  await writeFile(file, JSON.stringify(config));
  return file;
}

async function open(file: string, context?: string) {
  return kubeconfigCredentials({ file, now: () => clock, ...(context === undefined ? {} : { context }) });
}

async function optionsOf(credentials: Awaited<ReturnType<typeof open>>): Promise<Record<string, unknown>> {
  const { agent } = await credentials.access();
  return { ...(agent as Agent).options };
}

describe("a kubeconfig", () => {
  test("opens the current context, or another by name", async () => {
    const file = await write({ token: "t" });
    const work = await open(file);
    expect([work.server, work.namespace]).toEqual(["https://api.example:6443", "shop"]);
    expect((await work.access()).headers).toEqual({ authorization: "Bearer t" });
    const play = await open(file, "play");
    expect(play.server).toBe("https://play.example");
    expect((await play.access()).headers).toEqual({ authorization: "Bearer playful" });
    await expect(open(file, "none")).rejects.toThrow(
      'context "none" not found in the kubeconfig; contexts: work, play',
    );
  });

  test("reads client certificates, the CA and the TLS settings of the server", async () => {
    const user = { "client-certificate-data": base64("cert"), "client-key-data": base64("key") };
    const credentials = await open(await write(user, { "tls-server-name": "kubernetes" }));
    const options = await optionsOf(credentials);
    expect(String(options["cert"])).toBe("cert");
    expect(String(options["key"])).toBe("key");
    expect(String(options["ca"])).toBe("the ca");
    expect(options).toMatchObject({ servername: "kubernetes", keepAlive: true });
    expect(options["rejectUnauthorized"]).not.toBe(false);
    expect((await credentials.access()).headers).toEqual({});
    const careless = await open(await write(user, { "insecure-skip-tls-verify": true }));
    expect(await optionsOf(careless)).toMatchObject({ rejectUnauthorized: false });
  });

  test("reads user name and password", async () => {
    const { headers } = await (await open(await write({ username: "u", password: "p" }))).access();
    expect(headers).toEqual({ authorization: `Basic ${base64("u:p")}` });
  });

  test("reads a token file, and rereads it regularly", async () => {
    const tokenFile = join(folder, "token");
    await writeFile(tokenFile, "one\n");
    const credentials = await open(await write({ token: "ignored", tokenFile: "token" }));
    const said = async () => (await credentials.access()).headers;
    expect(await said()).toEqual({ authorization: "Bearer one" });
    await writeFile(tokenFile, "two\n");
    expect(await said()).toEqual({ authorization: "Bearer one" });
    clock = 10_000;
    expect(await said()).toEqual({ authorization: "Bearer two" });
  });

  test.each([
    ["can't be read", (file: string) => rm(file)],
    ["is empty, as if half written", (file: string) => writeFile(file, "\n")],
  ])("keeps its token while the token's file %s", async (_, spoil) => {
    const tokenFile = join(folder, "token");
    await writeFile(tokenFile, "one\n");
    const credentials = await open(await write({ tokenFile }));
    const said = async () => (await credentials.access()).headers;
    await said();
    await spoil(tokenFile);
    clock = 10_000;
    expect(await said()).toEqual({ authorization: "Bearer one" });
    await expect(credentials.renew()).rejects.toThrow(tokenFile);
    clock = 20_000;
    expect(await said()).toEqual({ authorization: "Bearer one" });
    await writeFile(tokenFile, "two");
    clock = 30_000;
    expect(await said()).toEqual({ authorization: "Bearer two" });
  });

  test("keeps its certificate while the file can't be read", async () => {
    const certificate = join(folder, "cert");
    await writeFile(certificate, "cert one");
    const user = { "client-certificate": certificate, "client-key-data": base64("key") };
    const credentials = await open(await write(user));
    const { agent } = await credentials.access();
    await rm(certificate);
    clock = 10_000;
    expect((await credentials.access()).agent).toBe(agent);
  });

  test("has no credentials if the token file was never readable", async () => {
    const tokenFile = join(folder, "token");
    const credentials = await open(await write({ tokenFile }));
    await expect(credentials.access()).rejects.toThrow(tokenFile);
    await writeFile(tokenFile, "");
    await expect(credentials.access()).rejects.toThrow(`${tokenFile} is empty`);
  });

  test("impersonates by as", async () => {
    const { headers } = await (await open(await write({ token: "t", as: "jane" }))).access();
    expect(headers).toEqual({ authorization: "Bearer t", "impersonate-user": "jane" });
  });

  const unsupported: readonly [string, JsonObject, JsonObject, RegExp][] = [
    ["impersonated groups", { token: "t", as: "jane", "as-groups": ["g"] }, {}, /as-groups, which usher/],
    ["a removed auth-provider", { "auth-provider": { name: "gcp" } }, {}, /gcp was removed.*exec plugin/],
    ["an unknown proxy", { token: "t" }, { "proxy-url": "ftp://proxy" }, /proxy-url must start with http/],
  ];
  test.each(unsupported)("rejects unsupported settings: %s", async (_, user, cluster, message) => {
    const file = await write(user, cluster);
    await expect(open(file).then((credentials) => credentials.access())).rejects.toThrow(message);
  });

  test("keeps its connections while nothing changes", async () => {
    const credentials = await open(await write({ token: "t" }));
    const { agent } = await credentials.access();
    clock = 60_000;
    expect((await credentials.access()).agent).toBe(agent);
  });

  test("runs an exec plugin once, again after its credential expires, and at once after a 401", async () => {
    const counter = join(folder, "count");
    await writeFile(counter, "0");
    const script = join(folder, "plugin.mjs");
    await writeFile(
      script,
      `import { readFileSync, writeFileSync } from "node:fs";
       const count = Number(readFileSync(process.env.COUNTER)) + 1;
       writeFileSync(process.env.COUNTER, String(count));
       const status = { token: "token " + count, expirationTimestamp: process.env.EXPIRES };
       console.log(JSON.stringify({ apiVersion: "client.authentication.k8s.io/v1", kind: "ExecCredential", status }));`,
    );
    const exec = (expires: string) => ({
      exec: {
        apiVersion: "client.authentication.k8s.io/v1",
        command: process.execPath,
        args: [script],
        env: [
          { name: "COUNTER", value: counter },
          { name: "EXPIRES", value: expires },
        ],
      },
    });
    const file = await write(exec("2999-01-01T00:00:00Z"));
    const credentials = await open(file);
    const token = async () => (await credentials.access()).headers["authorization"];
    expect([await token(), await token()]).toEqual(["Bearer token 1", "Bearer token 1"]);
    clock = 60_000;
    expect(await token()).toBe("Bearer token 1");
    await write(exec("2001-01-01T00:00:00Z"));
    expect(await credentials.renew()).toBe(true);
    expect(await token()).toBe("Bearer token 2");
    clock = 120_000;
    expect(await token()).toBe("Bearer token 3");
  });

  test("reports the error of an exec plugin", async () => {
    const exec = {
      exec: { command: process.execPath, args: ["-e", "console.error('no ticket'); process.exit(1)"] },
    };
    const credentials = await open(await write(exec));
    await expect(credentials.access()).rejects.toThrow("no ticket");
  });

  test("that is missing or empty is an error", async () => {
    await expect(open(join(folder, "none"))).rejects.toThrow("none");
    const file = join(folder, "empty");
    await writeFile(file, JSON.stringify({ apiVersion: "v1", kind: "Config" }));
    await expect(open(file)).rejects.toThrow(/context/);
  });
});
