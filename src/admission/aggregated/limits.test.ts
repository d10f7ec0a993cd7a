import { once } from "node:events";
import { connect } from "node:tls";
import { expect, test } from "vitest";
import { Authority } from "../../../test/cluster/certificates/authority.ts";
import { review } from "../../../test/support/admission/example-cluster.ts";
import {
  API,
  authenticationConfigMap,
  call,
  frontProxy,
  REVIEWS,
  reviewed,
} from "../../../test/support/admission/front-proxy.ts";
import { startTestServer } from "../../../test/support/admission/server.ts";
import type { ServerLimits } from "../server/limits.ts";

const HEADERS = ["X-Remote-User", "system:apiserver", "Content-Type", "application/json"];
const authority = await Authority.create("front-proxy-ca");
const client = await authority.issue({ user: "front-proxy-client" });

/** A server whose access reviews are never answered. */
async function waiting(limits: Partial<ServerLimits> = {}) {
  const asked = { count: 0 };
  const server = await startTestServer({
    source: reviewed([], {
      fetch: () => {
        asked.count += 1;
        return new Promise(() => undefined);
      },
    }),
    aggregated: { api: API, frontProxy: frontProxy(authenticationConfigMap(authority.pem.certificate)) },
    limits,
  });
  return { server, asked };
}

test("an access review that is not answered ends with the client's timeout, without reading the body", async () => {
  const { server } = await waiting();
  const url = `${server.webhookAddress.url}${REVIEWS}?timeout=100ms`;
  const body = JSON.stringify(review());
  const got = await call({ url, ca: server.ca, client, method: "POST", headers: HEADERS, body });
  expect(got.status).toBe(503);
  expect(JSON.parse(got.body)).toMatchObject({ kind: "Status", reason: "ServiceUnavailable" });
  await server.close();
});

test("closes a connection with too many requests that wait for their access review", async () => {
  const { server, asked } = await waiting({ pipelined: 2 });
  const { hostname, port } = new URL(server.webhookAddress.url);
  const socket = connect({
    host: hostname,
    port: Number(port),
    rejectUnauthorized: false,
    cert: client.certificate,
    key: client.key,
  });
  socket.on("error", () => undefined);
  await once(socket, "secureConnect");
  socket.write("GET /apis HTTP/1.1\r\nHost: x\r\nX-Remote-User: a\r\n\r\n".repeat(5));
  await once(socket, "close");
  expect(asked.count).toBeLessThanOrEqual(3);
  await server.close();
});

test("a server certificate of the front proxy's CA is not accepted from a client", async () => {
  const { server, asked } = await waiting();
  const forServers = await authority.issue({ user: "front-proxy-client", usages: ["server"] });
  const url = `${server.webhookAddress.url}/apis`;
  expect((await call({ url, ca: server.ca, client: forServers, headers: HEADERS })).status).toBe(401);
  expect(asked.count).toBe(0);
  await server.close();
});
