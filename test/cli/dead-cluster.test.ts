import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { folder, ROOT, usher } from "./usher.ts";

const POD = join(ROOT, "examples/pods/etcd.yaml");

/** The kubeconfig of a running API server that responds as `respond` says; by default it never responds. */
async function kubeconfig(respond: (url: string) => number | undefined = () => undefined): Promise<string> {
  const server = createServer((request, response) => {
    const status = respond(request.url ?? "");
    if (status === undefined) return;
    response.writeHead(status, { "content-type": "application/json" });
    response.end(JSON.stringify({ kind: "List", metadata: { resourceVersion: "1" }, items: [] }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return configOf(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
}

function configOf(server: string): string {
  const config = {
    "current-context": "c",
    clusters: [{ name: "c", cluster: { server } }],
    users: [{ name: "c", user: {} }],
    contexts: [{ name: "c", context: { cluster: "c", user: "c" } }],
  };
  return join(folder({ config: JSON.stringify(config) }), "config");
}

const COMMANDS: readonly (readonly [string, readonly string[]])[] = [
  ["review", ["review", POD, "--cluster"]],
  ["node-labels plan", ["node-labels", "plan", "--cluster"]],
  ["placement status", ["placement", "status", "-A"]],
];

describe.each(COMMANDS)("%s on an API server", (_name, args) => {
  const timed = [...args, "--request-timeout", "3"];

  test("that does not respond: prints a note after 2 s, and gives up", async () => {
    const { code, out, err } = await usher([...timed, "--kubeconfig", await kubeconfig()]);
    expect(code).toBe(3);
    expect(out).toBe("");
    expect(err).toMatch(
      /^cluster http:\/\/127.0.0.1:\d+\nwaiting for http:\/\/127.0.0.1:\d+\nusher: http:\/\/127.0.0.1:\d+ did not respond/,
    );
  });

  test("that refuses connections: fails at once", async () => {
    const { code, err } = await usher([...timed, "--kubeconfig", configOf("http://127.0.0.1:1")]);
    expect(code).toBe(3);
    expect(err).toMatch(/http:\/\/127.0.0.1:1 did not respond: .*ECONNREFUSED/);
  });
});

test("gives up when an API server stops responding while it is read", async () => {
  // The configuration is read and the check of permissions passes; the lists that follow fail, and are retried.
  const config = await kubeconfig((url) => (/limit=1(&|$)|usher-configuration$/.test(url) ? 200 : 503));
  const { code, err } = await usher([
    "review",
    POD,
    "--cluster",
    "--request-timeout",
    "2s",
    "--kubeconfig",
    config,
  ]);
  expect(code).toBe(3);
  expect(err).toMatch(/did not respond within 2 s \(--request-timeout\): it returns 503/);
});

test.each([403, 401, 404, 500])(
  "a review of a cluster that responds with %i ends at once",
  async (status) => {
    const config = await kubeconfig(() => status);
    const { code, err } = await usher(["review", POD, "--cluster", "--kubeconfig", config]);
    expect(code).toBe(3);
    expect(err).toContain("ConfigMap usher-system/usher-configuration");
  },
);

test.each(["0", "x", "-1", "2h", "61m"])("rejects --request-timeout %s", async (value) => {
  const { code, err } = await usher(["review", POD, "--cluster", "--request-timeout", value]);
  expect(code).toBe(2);
  expect(err).toContain("such as 30, 30s or 2m");
});
