import { expect, test } from "vitest";
import type { CountedTally } from "../core/effects.ts";
import { at, listAt } from "../core/json.ts";
import { SILENT } from "../core/log.ts";
import { TallyCollector, TallyPublisher } from "./tallies.ts";
import { TallyBook } from "./tally-book.ts";
import { refuse, TestApiServer } from "./test-api-server.ts";

const POLICY = { kind: "Policy", name: "a", uid: "u" };
const FOLDER = "/api/v1/namespaces/usher-system/configmaps";

function replica(server: TestApiServer, name: string, clock: () => number = () => 0) {
  const book = new TallyBook();
  const said: string[] = [];
  const told: (readonly CountedTally[])[] = [];
  const options = {
    client: server.client,
    namespace: "usher-system",
    replica: name,
    book,
    clock,
    log: { ...SILENT, warn: (facts: object) => void said.push(JSON.stringify(facts)) },
  };
  return {
    book,
    said,
    told,
    publisher: new TallyPublisher({ ...options, owner: { apiVersion: "v1", kind: "Pod", name, uid: "p" } }),
    collector: new TallyCollector({ ...options, counted: (policies) => void told.push(policies) }),
    count: (applied: number) =>
      book.add([{ module: "placement", policy: POLICY, outcomes: { applied } }], 1_000),
  };
}

test("each replica publishes an object of its own, owned by its pod, and only where there is something new", async () => {
  const server = new TestApiServer();
  const { publisher, count } = replica(server, "usher-1");
  await publisher.publish();
  expect(server.asked).toEqual([]);
  count(3);
  await publisher.publish();
  await publisher.publish();
  expect(server.asked).toEqual([`PATCH ${FOLDER}/usher-tallies-usher-1?fieldManager=usher&force=true`]);
  const [body] = server.bodies;
  expect(at(body, "metadata", "labels")).toEqual({ "usher.dev/tallies": "true" });
  expect(listAt(body, "metadata", "ownerReferences")).toEqual([
    { apiVersion: "v1", kind: "Pod", name: "usher-1", uid: "p" },
  ]);
  await publisher.stop();
  expect(server.objects.size).toBe(0);
});

test("a quiet replica gives a sign of life now and then", async () => {
  const server = new TestApiServer();
  let time = 0;
  const { publisher, count } = replica(server, "usher-1", () => time);
  count(1);
  await publisher.publish();
  time = 599_999;
  await publisher.publish();
  expect(server.asked).toHaveLength(1);
  time = 600_000;
  await publisher.publish();
  expect(server.asked).toHaveLength(2);
});

test("the leader adds up all replicas, its own as they are now, and tells what has changed", async () => {
  const server = new TestApiServer();
  const [one, two, three] = ["1", "2", "3"].map((name) => replica(server, name));
  if (one === undefined || two === undefined || three === undefined) throw new Error("no replicas");
  for (const { count, publisher } of [one, two, three]) {
    count(2);
    await publisher.publish();
  }
  one.count(10);
  await one.collector.collect();
  expect(one.collector.of("placement", POLICY)).toMatchObject({
    outcomes: { applied: 16 },
    lastApplied: 1_000,
  });
  expect(one.collector.of("placement", { ...POLICY, uid: "another" })).toBeUndefined();
  expect(one.told).toHaveLength(1);
  await one.collector.collect();
  expect(one.told).toHaveLength(1);
  two.count(1);
  await two.publisher.publish();
  await one.collector.collect();
  expect(one.told.at(-1)).toMatchObject([{ outcomes: { applied: 17 } }]);
});

test("what its owner has left behind is not counted any more and deleted, but not what lives", async () => {
  const server = new TestApiServer();
  let time = 0;
  const [leader, dead, alive] = ["leader", "dead", "alive"].map((name) => replica(server, name, () => time));
  if (leader === undefined || dead === undefined || alive === undefined) throw new Error("no replicas");
  for (const { count, publisher } of [dead, alive]) {
    count(1);
    await publisher.publish();
  }
  await leader.collector.collect();
  time = 1_000_000;
  await alive.publisher.publish();
  await leader.collector.collect();
  expect(leader.collector.of("placement", POLICY)).toMatchObject({ outcomes: { applied: 2 } });
  time = 1_800_000;
  await leader.collector.collect();
  expect([...server.objects.keys()]).toEqual([`${FOLDER}/usher-tallies-alive`]);
  expect(leader.collector.of("placement", POLICY)).toMatchObject({ outcomes: { applied: 1 } });
});

test("an API server that refuses is trouble for the log only", async () => {
  const server = new TestApiServer();
  server.fault = () => refuse(403, "Forbidden");
  const { publisher, collector, count, said } = replica(server, "usher-1");
  count(1);
  await publisher.publish();
  await collector.collect();
  expect(said).toHaveLength(2);
  expect(collector.of("placement", POLICY)).toBeUndefined();
});
