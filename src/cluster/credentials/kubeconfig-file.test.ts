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

test("YAML is read, the slash at the server's end goes, and paths are meant from where the file is", async () => {
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

test("a command without a slash is PATH's, and a context may have no user", async () => {
  const file = await write("config", YAML);
  expect((await readKubeconfig(file, "play")).user).toEqual({ exec: { command: "login" } });
  expect((await readKubeconfig(file, "nobody")).user).toEqual({});
});

test("of several files in KUBECONFIG the first that says something counts, and missing ones do not", async () => {
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
  ["no context of that name", YAML, "none", /there is no context "none"; there are: work, play, nobody$/],
  ["no context at all", "{}", undefined, /no current context with a cluster; give --context: none$/],
  [
    "a context without its cluster",
    '{"current-context": "a", "contexts": [{"name": "a", "context": {"cluster": "gone"}}]}',
    undefined,
    /no current context with a cluster; give --context: a$/,
  ],
  [
    "a context without its user",
    YAML.replace("user: u,", "user: gone,"),
    undefined,
    /the context work names the user "gone"/,
  ],
  ["no object", "[]", undefined, /config is no kubeconfig$/],
  ["nothing", "", undefined, /config is no kubeconfig$/],
  ["no YAML", "a: [", undefined, /config is no kubeconfig: ./],
  [
    "odd shapes",
    '{"current-context": 1, "contexts": {}, "users": [1, null]}',
    undefined,
    /no current context/,
  ],
];
test.each(wrong)("%s is an error that says what", async (_, text, context, message) => {
  await expect(readKubeconfig(await write("config", text), context)).rejects.toThrow(message);
});

test("none at all is an error that says what to do", async () => {
  await expect(readKubeconfig(join(folder, "none"), undefined)).rejects.toMatchObject({ code: "ENOENT" });
  vi.stubEnv("KUBECONFIG", join(folder, "none"));
  await expect(readKubeconfig(undefined, undefined)).rejects.toThrow(
    "there is no kubeconfig: set KUBECONFIG",
  );
});
