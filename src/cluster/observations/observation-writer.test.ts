import { expect, test } from "vitest";
import { refuse, TestApiServer } from "../../../test/support/cluster/api-server.ts";
import { decodeObservations, type Observation } from "../../core/evaluate/observations.ts";
import { at, stringAt } from "../../core/json.ts";
import { SILENT } from "../../core/log.ts";
import { ObservationWriter } from "./observation-writer.ts";

const PATH = "/api/v1/namespaces/usher-system/configmaps/usher-observations-guard";
const ALICE = { module: "guard", fields: { namespace: "shop", actor: "alice" } };
const BOB = { module: "guard", fields: { namespace: "shop", actor: "bob" } };

function replica(server: TestApiServer) {
  const warnings: string[] = [];
  const log = { ...SILENT, warn: (_: object, text: string) => void warnings.push(text) };
  return {
    writer: new ObservationWriter({ client: server.client, namespace: "usher-system", log }),
    warnings,
  };
}

function stored(server: TestApiServer): Observation[] {
  return decodeObservations(stringAt(server.objects.get(PATH), "data", "observations") ?? "");
}

test("replicas add to one object, which outlives them", async () => {
  const server = new TestApiServer();
  const [one, two] = [replica(server).writer, replica(server).writer];
  one.add([ALICE, ALICE], 1_000);
  await one.stop();
  two.add([ALICE, BOB], 2_000);
  await two.stop();
  const later = replica(server).writer;
  later.add([BOB], 3_000);
  await later.stop();
  expect(stored(server)).toEqual([
    { fields: BOB.fields, count: 2, first: 2_000, last: 3_000 },
    { fields: ALICE.fields, count: 3, first: 1_000, last: 2_000 },
  ]);
  expect(at(server.objects.get(PATH), "metadata", "labels")).toEqual({ "usher.dev/observations": "true" });
});

test("without observations no request is sent", async () => {
  const server = new TestApiServer();
  const { writer } = replica(server);
  await writer.write();
  await writer.stop();
  expect(server.asked).toEqual([]);
});

test("two replicas that write concurrently lose nothing", async () => {
  const server = new TestApiServer();
  const writers = [ALICE, BOB, ALICE].map((observed, i) => {
    const { writer } = replica(server);
    writer.add([observed], i);
    return writer;
  });
  await Promise.all(writers.map((writer) => writer.write()));
  expect(stored(server).map(({ count }) => count)).toEqual([2, 1]);
  expect(server.count("POST 409")).toBe(2);
});

test("observations that can't be written are kept, logged once per attempt, and written later", async () => {
  const server = new TestApiServer();
  const { writer, warnings } = replica(server);
  writer.add([ALICE], 1);
  server.fault = () => refuse(403, "Forbidden");
  await writer.write();
  writer.add([ALICE], 2);
  server.fault = () => undefined;
  await writer.write();
  expect(warnings).toEqual(["failed to write observations"]);
  expect(stored(server)).toEqual([{ fields: ALICE.fields, count: 2, first: 1, last: 2 }]);
});

test("ten thousand observations in one interval stay bounded", async () => {
  const server = new TestApiServer();
  const { writer } = replica(server);
  for (let i = 0; i < 10_000; i++)
    writer.add([{ module: "guard", fields: { namespace: "shop", actor: `user-${i}` } }], i);
  await writer.write();
  expect(stored(server)).toHaveLength(1_000);
});
