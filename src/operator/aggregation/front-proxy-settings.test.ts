import { once } from "node:events";
import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import { authenticationConfigMap } from "../../../test/support/admission/front-proxy.ts";
import { event } from "../../../test/support/cluster/watch-server.ts";
import { makeCertificate } from "../../admission/tls/certificate.ts";
import type { Client } from "../../cluster/client/client.ts";
import type { JsonObject } from "../../core/json.ts";
import { SILENT } from "../../core/log.ts";
import { openFrontProxy } from "./front-proxy-settings.ts";

/** An API server with one watch of one ConfigMap, whose events the test sends. */
function apiServer() {
  const paths: string[] = [];
  const events = new PassThrough({ objectMode: true });
  const client: Client = {
    server: "https://test",
    request: async (_method, path) => {
      paths.push(path);
      const body = { resources: [{ name: "configmaps", namespaced: true }] };
      return { status: 200, headers: {}, body, text: "" };
    },
    stream: async (path, { signal } = {}) => {
      paths.push(path);
      signal?.addEventListener("abort", () => events.end());
      return { status: 200, headers: {}, lines: events as AsyncIterable<string>, close: () => events.end() };
    },
    close: () => undefined,
  };
  const annotations = { "k8s.io/initial-events-end": "true" };
  const send = (type: string, object: JsonObject) =>
    events.write(
      event(type, { ...object, metadata: { resourceVersion: "7", ...(object["metadata"] as JsonObject) } }),
    );
  return { client, paths, send, listed: () => send("BOOKMARK", { metadata: { annotations } }) };
}

test("waits for the ConfigMap with a log line, then follows it by name", async () => {
  const { client, paths, send, listed } = apiServer();
  const [first, second] = await Promise.all([makeCertificate(["a"]), makeCertificate(["b"])]);
  const warned = Promise.withResolvers<object>();
  const log = { ...SILENT, warn: (facts: object) => warned.resolve(facts) };
  const opening = openFrontProxy(client, log, new AbortController().signal);
  listed();
  expect(await warned.promise).toEqual({ error: expect.stringContaining("does not exist") });
  send("ADDED", authenticationConfigMap(first.ca));
  const { frontProxy, stop } = await opening;
  expect(frontProxy.current?.ca).toBe(first.ca);
  const path = paths.find((one) => one.includes("watch=true")) ?? "";
  expect(path).toContain("/api/v1/namespaces/kube-system/configmaps?");
  expect(path).toContain("fieldSelector=metadata.name%3Dextension-apiserver-authentication");
  const changed = new EventTarget();
  frontProxy.follow(() => changed.dispatchEvent(new Event("changed")));
  const seen = once(changed, "changed");
  send("MODIFIED", authenticationConfigMap(second.ca));
  await seen;
  expect(frontProxy.current?.ca).toBe(second.ca);
  await stop();
});

test("a stop ends the wait", async () => {
  const { client, listed } = apiServer();
  const ended = new AbortController();
  const opening = openFrontProxy(client, SILENT, ended.signal);
  listed();
  ended.abort();
  await expect(opening).rejects.toThrow("front proxy");
});
