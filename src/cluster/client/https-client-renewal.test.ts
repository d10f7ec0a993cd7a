import type { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { respondJson, useHttpFixture } from "../../../test/support/cluster/http-fixture.ts";

const http = useHttpFixture();

test("a request rejected with 401 is sent again with new credentials, once, and only if they are new", async () => {
  const tokens: string[] = [];
  http.handler = (request, response, body) => {
    tokens.push(`${request.headers.authorization} ${body}`);
    respondJson(response, request.headers.authorization === "Bearer good" ? 200 : 401, {});
  };
  expect((await http.client.request("POST", "/api", { body: 1 })).status).toBe(401);
  expect([tokens, http.renewals]).toEqual([["Bearer one 1"], 1]);
  http.nextToken = "good";
  expect((await http.client.request("POST", "/api", { body: 2 })).status).toBe(200);
  expect(tokens.slice(1)).toEqual(["Bearer one 2", "Bearer good 2"]);
  http.nextToken = "bad";
  http.token = "worse";
  expect((await http.client.request("POST", "/api", { body: 3 })).status).toBe(401);
  expect(tokens.slice(3)).toEqual(["Bearer worse 3", "Bearer bad 3"]);
});

test("requests rejected together renew once, and are all sent again", async () => {
  const held: (() => void)[] = [];
  http.handler = (request, response) => {
    const good = request.headers.authorization === "Bearer good";
    const reply = (): void => respondJson(response, good ? 200 : 401, {});
    // Some 401s arrive long after others caused a renewal.
    if (good || held.length >= 10) reply();
    else held.push(reply);
  };
  http.nextToken = "good";
  const requests = Array.from({ length: 20 }, () => http.client.request("GET", "/api"));
  await Promise.all(requests.slice(10));
  for (const reply of held) reply();
  expect((await Promise.all(requests)).map(({ status }) => status)).toEqual(Array(20).fill(200));
  expect(http.renewals).toBe(1);
});

test("credentials that can't be loaded after a 401 are reported immediately, and no connection stays occupied", async () => {
  const connections = new Set<Socket>();
  http.server.on("connection", (socket: Socket) => connections.add(socket));
  let requests = 0;
  http.handler = (_, response) => {
    requests += 1;
    http.credentialsError = new Error("the token file is gone");
    respondJson(response, 401, { message: "x".repeat(100_000) });
  };
  for (let i = 0; i < 5; i++) {
    http.credentialsError = undefined;
    await expect(http.client.request("GET", "/api")).rejects.toThrow("the token file is gone");
    await sleep(20);
  }
  expect(requests).toBe(5);
  expect(connections.size).toBe(1);
});
