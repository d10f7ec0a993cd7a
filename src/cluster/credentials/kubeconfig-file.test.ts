import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { readKubeconfig } from "./kubeconfig-file.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "usher-kubeconfig-"));
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await rm(folder, { recursive: true });
});

async function write(name: string, text: string): Promise<string> {
  const file = join(folder, name);
  await writeFile(file, text);
  return file;
}

const YAML = `
apiVersion: v1
kind: Config
current-context: work
clusters:
- name: c
  cluster: {server: "https://api.example/k8s/", certificate-authority: pki/ca.crt, insecure-skip-tls-verify: true}
users:
- name: u
  user:
    tokenFile: token
    client-certificate: /etc/pki/me.crt
    exec: {command: ./login, args: [a]}
- name: v
  user: {exec: {command: login}}
contexts:
- name: work
  context: {cluster: c, user: u, namespace: shop}
- name: play
  context: {cluster: c, user: v}
- name: nobody
  context: {cluster: c}
`;

test("reads YAML, trims the server's trailing slash and resolves paths relative to the file", async () => {
  const { server, namespace, cluster, user } = await readKubeconfig(await write("config", YAML), undefined);
  expect({ server, namespace }).toEqual({ server: "https://api.example/k8s", namespace: "shop" });
  expect(cluster).toMatchObject({
    "certificate-authority": join(folder, "pki/ca.crt"),
    "insecure-skip-tls-verify": true,
  });
  expect(user).toEqual({
    tokenFile: join(folder, "token"),
    "client-certificate": "/etc/pki/me.crt",
    exec: { command: join(folder, "login"), args: ["a"] },
  });
});

test("a command without a slash stays for PATH, and a context may have no user", async () => {
  const file = await write("config", YAML);
  expect((await readKubeconfig(file, "play")).user).toEqual({ exec: { command: "login" } });
  expect((await readKubeconfig(file, "nobody")).user).toEqual({});
});

test("merges the files in KUBECONFIG, the first entry wins, and skips missing files", async () => {
  const first = await write(
    "first",
    JSON.stringify({
      "current-context": "work",
      users: [{ name: "u", user: { token: "first" } }],
    }),
  );
  await mkdir(join(folder, "other"));
  const second = await write("other/second", YAML);
  vi.stubEnv("KUBECONFIG", [join(folder, "missing"), first, second].join(delimiter));
  const { user, cluster } = await readKubeconfig(undefined, undefined);
  expect(user).toEqual({ token: "first" });
  expect(cluster["certificate-authority"]).toBe(join(folder, "other/pki/ca.crt"));
});

const wrong: readonly [string, string, string | undefined, RegExp][] = [
  [
    "no context of that name",
    YAML,
    "none",
    /context "none" not found in the kubeconfig; contexts: work, play, nobody$/,
  ],
  [
    "no context at all",
    "{}",
    undefined,
    /no current context with a cluster; pass --context with one of: none$/,
  ],
  [
    "a context without its cluster",
    '{"current-context": "a", "contexts": [{"name": "a", "context": {"cluster": "gone"}}]}',
    undefined,
    /no current context with a cluster; pass --context with one of: a$/,
  ],
  [
    "a context without its user",
    YAML.replace("user: u,", "user: gone,"),
    undefined,
    /context work: user "gone" not found/,
  ],
  ["no object", "[]", undefined, /config is not a kubeconfig: must be an object$/],
  ["nothing", "", undefined, /config is not a kubeconfig: must be an object$/],
  ["no YAML", "a: [", undefined, /config is not a kubeconfig: ./],
  [
    "wrong types",
    '{"current-context": 1, "contexts": {}, "users": [1, null]}',
    undefined,
    /no current context/,
  ],
];
test.each(wrong)("%s is an error with its cause", async (_, text, context, message) => {
  await expect(readKubeconfig(await write("config", text), context)).rejects.toThrow(message);
});

test("a missing kubeconfig is an error with the way to set it", async () => {
  await expect(readKubeconfig(join(folder, "none"), undefined)).rejects.toMatchObject({ code: "ENOENT" });
  vi.stubEnv("KUBECONFIG", join(folder, "none"));
  await expect(readKubeconfig(undefined, undefined)).rejects.toThrow("no kubeconfig found: set KUBECONFIG");
});
