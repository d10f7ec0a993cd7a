import { once } from "node:events";
import { connect } from "node:tls";
import { expect, test } from "vitest";
import { post, review } from "../../../test/support/admission/example-cluster.ts";
import { startTestServer } from "../../../test/support/admission/server.ts";

test.each(["TLSv1.2", "TLSv1.3"] as const)("%s is served", async (version) => {
  const server = await startTestServer();
  const url = `${server.webhookAddress.url}/validate/welcome`;
  const got = await post(url, server.ca, review(), { minVersion: version, maxVersion: version });
  expect(got.status).toBe(200);
  await server.close();
});

test("a client can't renegotiate", async () => {
  const server = await startTestServer();
  const { host, port } = server.webhookAddress;
  const socket = connect({ host, port, ca: server.ca, maxVersion: "TLSv1.2" });
  socket.on("error", () => undefined);
  await once(socket, "secureConnect");
  const outcome = await new Promise((resolve) => {
    socket.once("close", () => resolve("closed"));
    socket.renegotiate({}, (error) => resolve(error === null ? "renegotiated" : "refused"));
  });
  expect(outcome).not.toBe("renegotiated");
  socket.destroy();
  await server.close();
});
