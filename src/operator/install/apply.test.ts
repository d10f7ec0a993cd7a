import { expect, test } from "vitest";
import { answerOf, NO_SUCH_API, refuse, TestApiServer } from "../../../test/support/cluster/api-server.ts";
import { StatusError } from "../../cluster/client/api-response.ts";
import { Objects } from "./apply.ts";

test.each([
  ["200", answerOf(200, { resources: [] }), true],
  ["404", NO_SUCH_API, false],
])("a group's availability is read from the API server's response: %s", async (_, answer, served) => {
  const server = new TestApiServer();
  server.fault = () => answer;
  expect(await new Objects(server.client).serves("g.example/v1")).toBe(served);
});

test.each([403, 500, 503])("an error (%i) does not mean that the group is not served", async (status) => {
  const server = new TestApiServer();
  server.fault = () => refuse(status, "Trouble");
  await expect(new Objects(server.client).serves("g.example/v1")).rejects.toBeInstanceOf(StatusError);
});
