import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { onTestFinished } from "vitest";
import type { Json } from "../../src/core/json.ts";
import { TestInstallation } from "../support/operator/installation.ts";
import { folder, type Ran, usher } from "./usher.ts";

/** A cluster that only stores objects, and a command line that uses it. */
export interface Remembering {
  readonly cluster: TestInstallation;
  readonly run: (...args: readonly string[]) => Promise<Ran>;
}

/** Nothing runs in it: an installation never becomes ready, so installs must not wait. */
export async function remembering(): Promise<Remembering> {
  const cluster = new TestInstallation();
  const server = createServer((request, response) => {
    const answer = async () => {
      const body = await text(request);
      const parsed = body === "" ? {} : { body: JSON.parse(body) as Json };
      const got = await cluster.server.client.request(request.method ?? "", request.url ?? "", parsed);
      response.writeHead(got.status, { "content-type": "application/json" }).end(got.text);
    };
    answer().catch((error: unknown) => response.writeHead(500).end(String(error)));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const content = {
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "c", cluster: { server: `http://127.0.0.1:${port}` } }],
    users: [{ name: "u", user: {} }],
    contexts: [{ name: "here", context: { cluster: "c", user: "u" } }],
    "current-context": "here",
  };
  const kubeconfig = `${folder({ config: JSON.stringify(content) })}/config`;
  return {
    cluster,
    run: (command = "", ...args) => {
      const wait = command === "install" ? ["--no-wait"] : [];
      return usher([command, "--kubeconfig", kubeconfig, ...wait, ...args]);
    },
  };
}
