import { expect, test } from "vitest";
import { answerOf, refuse, TestApiServer } from "../../../test/support/cluster/api-server.ts";
import type { CountedTally } from "../../core/decision/tally.ts";
import { at, listAt } from "../../core/json.ts";
import { SILENT } from "../../core/log.ts";
import type { ApiResponse } from "../client/client.ts";
import { Tallies } from "./tallies.ts";
import { TallyCollector } from "./tally-collector.ts";
import { TallyPublisher } from "./tally-publisher.ts";

const POLICY = { kind: "Policy", name: "a", uid: "u" };
const OWNER = {
  apiVersion: "rbac.authorization.k8s.io/v1",
  kind: "ClusterRole",
  name: "installation",
  uid: "i",
};
const FOLDER = "/api/v1/namespaces/usher-system/configmaps";

function replica(server: TestApiServer, name: string, clock: () => number = () => 0) {
  const tallies = new Tallies();
  const said: string[] = [];
  const reported: (readonly CountedTally[])[] = [];
  const options = {
    client: server.client,
    namespace: "usher-system",
    replica: name,
    tallies,
    clock,
    owner: async () => OWNER,
    log: { ...SILENT, warn: (facts: object) => void said.push(JSON.stringify(facts)) },
  };
  return {
    tallies,
    said,
    reported,
    publisher: new TallyPublisher(options),
    collector: new TallyCollector({ ...options, counted: (policies) => void reported.push(policies) }),
    count: (applied: number) =>
      tallies.add([{ module: "placement", policy: POLICY, outcomes: { applied } }], 1_000),
  };
}

test("each replica publishes a ConfigMap owned by the installation, and only after changes", async () => {
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
  expect(listAt(body, "metadata", "ownerReferences")).toEqual([OWNER]);
});

test("a replica without changes publishes heartbeats", async () => {
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

test("the leader sums all replicas, its own from memory, and reports changes", async () => {
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
  expect(one.reported).toHaveLength(1);
  await one.collector.collect();
  expect(one.reported).toHaveLength(1);
  two.count(1);
  await two.publisher.publish();
  await one.collector.collect();
  expect(one.reported.at(-1)).toMatchObject([{ outcomes: { applied: 17 } }]);
});

test("counts survive the replicas and the leader that counted them", async () => {
  const server = new TestApiServer();
  let time = 0;
  const [leader, dead, alive] = ["leader", "dead", "alive"].map((name) => replica(server, name, () => time));
  if (leader === undefined || dead === undefined || alive === undefined) throw new Error("no replicas");
  for (const { count, publisher } of [dead, alive]) {
    count(1);
    await publisher.publish();
  }
  dead.count(4);
  await dead.publisher.stop();
  await leader.collector.collect();
  expect(leader.collector.of("placement", POLICY)).toMatchObject({ outcomes: { applied: 6 } });
  for (time = 1_000_000; time <= 1_800_000; time += 800_000) {
    await alive.publisher.publish();
    await leader.collector.collect();
  }
  // The sum of the gone replicas is in one object.
  expect([...server.objects.keys()].sort()).toEqual(
    ["alive", "retired"].map((name) => `${FOLDER}/usher-tallies-${name}`),
  );
  const next = replica(server, "next", () => time);
  next.count(2);
  for (const { collector } of [leader, next, next]) await collector.collect();
  expect(leader.collector.of("placement", POLICY)).toMatchObject({ outcomes: { applied: 6 } });
  expect(next.collector.of("placement", POLICY)).toMatchObject({ outcomes: { applied: 8 } });
  expect(next.reported).toHaveLength(1);
});

test("tallies that were summed and can't be deleted count once, and are deleted later", async () => {
  const server = new TestApiServer();
  let time = 0;
  const [leader, dead] = [replica(server, "leader", () => time), replica(server, "dead", () => time)];
  dead.count(1);
  await dead.publisher.publish();
  await leader.collector.collect();
  time = 1_800_000;
  server.fault = (method) => (method === "DELETE" ? refuse(500, "InternalError") : undefined);
  for (let i = 0; i < 2; i++) {
    await leader.collector.collect();
    expect(leader.collector.of("placement", POLICY)).toMatchObject({ outcomes: { applied: 1 } });
  }
  server.fault = () => undefined;
  await leader.collector.collect();
  expect([...server.objects.keys()]).toEqual([`${FOLDER}/usher-tallies-retired`]);
  expect(leader.collector.of("placement", POLICY)).toMatchObject({ outcomes: { applied: 1 } });
});

test("tallies that can't be summed stay as they are", async () => {
  const server = new TestApiServer();
  let time = 0;
  const [leader, dead] = [replica(server, "leader", () => time), replica(server, "dead", () => time)];
  dead.count(1);
  await dead.publisher.publish();
  await leader.collector.collect();
  time = 1_800_000;
  server.fault = (method) => (method === "PATCH" ? refuse(409, "Conflict") : undefined);
  await leader.collector.collect();
  expect([...server.objects.keys()]).toEqual([`${FOLDER}/usher-tallies-dead`]);
  expect(leader.collector.of("placement", POLICY)).toMatchObject({ outcomes: { applied: 1 } });
});

test("a ConfigMap that reappears unchanged is observed from then on", async () => {
  const server = new TestApiServer();
  let time = 0;
  const [leader, other] = [replica(server, "leader", () => time), replica(server, "other", () => time)];
  other.count(1);
  await other.publisher.publish();
  const [[path, object] = ["", {}]] = server.objects;
  await leader.collector.collect();
  server.objects.delete(path);
  await leader.collector.collect();
  time = 1_800_000;
  // No cluster repeats a version. Here the repetition shows that nothing was remembered.
  server.objects.set(path, object);
  await leader.collector.collect();
  expect(leader.collector.of("placement", POLICY)).toMatchObject({ outcomes: { applied: 1 } });
});

test("of two collections the one started last counts, in any order of completion", async () => {
  const server = new TestApiServer();
  const [leader, other] = [replica(server, "leader"), replica(server, "other")];
  other.count(1);
  await other.publisher.publish();
  const old = answerOf(200, { items: [...server.objects.values()] });
  const late = Promise.withResolvers<ApiResponse>();
  server.fault = () => late.promise;
  const first = leader.collector.collect();
  server.fault = () => undefined;
  other.count(1);
  await other.publisher.publish();
  await leader.collector.collect();
  late.resolve(old);
  await first;
  expect(leader.collector.of("placement", POLICY)).toMatchObject({ outcomes: { applied: 2 } });
  expect(leader.reported).toHaveLength(1);
});

test("stopping waits for the write in flight, and publishes later counts", async () => {
  const server = new TestApiServer();
  const { publisher, count } = replica(server, "usher-1");
  const gate = Promise.withResolvers<undefined>();
  server.fault = (method) => (method === "PATCH" ? gate.promise : undefined);
  count(1);
  const publishing = publisher.publish();
  count(1);
  const stopping = publisher.stop();
  gate.resolve(undefined);
  await Promise.all([publishing, stopping]);
  expect(server.asked).toHaveLength(2);
  expect(at([...server.objects.values()][0], "data", "tallies")).toMatch(/\[2,/);
});

test("a replica publishes one write at a time", async () => {
  const server = new TestApiServer();
  const { publisher, count } = replica(server, "usher-1");
  count(1);
  const first = publisher.publish();
  count(1);
  await Promise.all([first, publisher.publish()]);
  expect(server.asked).toHaveLength(1);
  await publisher.publish();
  expect(server.asked).toHaveLength(2);
});

test("errors of the API server are logged, and nothing else", async () => {
  const server = new TestApiServer();
  server.fault = () => refuse(403, "Forbidden");
  const { publisher, collector, count, said } = replica(server, "usher-1");
  count(1);
  await publisher.publish();
  await collector.collect();
  expect(said).toHaveLength(2);
  expect(collector.of("placement", POLICY)).toBeUndefined();
});
