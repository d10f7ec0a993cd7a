import { expect, test } from "vitest";
import type { Client } from "../../cluster/client/client.ts";
import { at, type Json, type JsonObject } from "../../core/json.ts";
import { SILENT } from "../../core/log.ts";
import { OperatorCondition } from "./operand-controller.ts";

/** An API server with one OperatorCondition. */
function olm(spec: JsonObject | undefined) {
  const stored = { spec, writes: 0 };
  const object = () => ({ metadata: { name: "csv", resourceVersion: "1" }, spec: stored.spec ?? {} });
  const client: Client = {
    server: "https://test",
    stream: () => Promise.reject(new Error("no stream")),
    close: () => undefined,
    request: async (method, path, { body } = {}) => {
      const answer = (status: number, json: Json) => ({ status, headers: {}, body: json, text: "" });
      if (path === "/apis/operators.coreos.com/v2")
        return answer(200, {
          resources: [{ name: "operatorconditions", kind: "OperatorCondition", namespaced: true }],
        });
      if (stored.spec === undefined)
        return answer(404, { kind: "Status", details: { name: "csv" }, reason: "NotFound" });
      if (method === "PATCH") {
        stored.spec = (at(body, 1, "value") ?? {}) as JsonObject;
        stored.writes += 1;
      }
      return answer(200, object());
    },
  };
  const lines: string[] = [];
  const log = { ...SILENT, warn: (_facts: object, message: string) => lines.push(message) };
  const options = { client, namespace: "ns", name: "csv", fieldManager: "operator", log, now: () => 0 };
  return { stored, lines, condition: new OperatorCondition(options) };
}

const status = (...types: readonly string[]): JsonObject => ({
  conditions: types.map((type) => ({ type, status: "True", reason: "RollingOut", message: "1 of 2 pods" })),
});

test.each<[string, JsonObject | undefined, string]>([
  ["no custom resource", undefined, "True"],
  ["nothing to do", status("Available"), "True"],
  ["pods are being replaced", status("Available", "Progressing"), "False"],
  ["that is stuck", status("Progressing", "Degraded"), "True"],
])("%s", async (_what, reported, upgradeable) => {
  const { stored, condition } = olm({ overrides: [], conditions: [{ type: "Other", status: "True" }] });
  await condition.report(reported);
  expect(stored.spec).toMatchObject({
    overrides: [],
    conditions: [{ type: "Other" }, { type: "Upgradeable", status: upgradeable }],
  });
  await condition.report(reported);
  expect(stored.writes).toBe(1);
});

test("a missing OperatorCondition does not fail the operand, and is logged once", async () => {
  const { lines, condition } = olm(undefined);
  await condition.report(undefined);
  await condition.report(undefined);
  expect(lines).toEqual(["failed to write the OperatorCondition, retrying"]);
});
