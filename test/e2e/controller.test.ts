import { expect, test } from "vitest";
import type { Client } from "../../src/cluster/client/client.ts";
import { createKindPaths, createResources } from "../../src/cluster/client/discovery.ts";
import { createWrites, type MakeWrite } from "../../src/cluster/controller/planned-writes.ts";
import { EventRecorder } from "../../src/cluster/events/event-recorder.ts";
import { LeaderElection } from "../../src/cluster/leader-election/leader-election.ts";
import { Tallies } from "../../src/cluster/policy-statistics/tallies.ts";
import { TallyCollector } from "../../src/cluster/policy-statistics/tally-collector.ts";
import { TallyPublisher } from "../../src/cluster/policy-statistics/tally-publisher.ts";
import { at, type Json, type JsonObject, listAt, stringAt } from "../../src/core/json.ts";
import { SILENT } from "../../src/core/log.ts";
import { eventually } from "../cluster/access/wait.ts";
import { describeCluster, testNamespace } from "../cluster/describe.ts";
import { clientOf } from "./fixtures/client.ts";

const GROUP = "controller.usher.dev";
const WROTE = { wrote: expect.stringMatching(/^\d+$/) };

function crd(plural: string, kind: string, subresources: JsonObject): JsonObject {
  const open = { type: "object", "x-kubernetes-preserve-unknown-fields": true };
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `${plural}.${GROUP}` },
    spec: {
      group: GROUP,
      names: { kind, plural, singular: kind.toLowerCase(), listKind: `${kind}List` },
      scope: "Namespaced",
      versions: [
        {
          name: "v1",
          served: true,
          storage: true,
          schema: { openAPIV3Schema: { type: "object", properties: { spec: open, status: open } } },
          subresources,
        },
      ],
    },
  };
}

describeCluster("controller", (cluster) => {
  const namespace = testNamespace(cluster);
  const configMaps = () => `/api/v1/namespaces/${namespace()}/configmaps`;
  const versionOf = (object: Json): string => stringAt(object, "metadata", "resourceVersion") ?? "";

  async function withClient<T>(use: (client: Client) => Promise<T>): Promise<T> {
    const client = await clientOf(cluster());
    try {
      return await use(client);
    } finally {
      client.close();
    }
  }

  const withWrites = (use: (write: MakeWrite) => Promise<void>) =>
    withClient((client) => use(createWrites(client, createResources(client, []), createKindPaths(client))));

  test("applies usher's own fields: creates the object, restores a field, and keeps fields of others", async () => {
    const apply = {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: "ours", namespace: namespace() },
      data: { mine: "1" },
    };
    await withWrites(async (write) => {
      expect(await write({ apply, resourceVersion: undefined })).toEqual(WROTE);
      const accepted = await cluster().call("PATCH", `${configMaps()}/ours`, {
        data: { mine: "accepted", theirs: "2" },
      });
      expect(await write({ apply, resourceVersion: versionOf(accepted) })).toEqual(WROTE);
      const after = await cluster().call("GET", `${configMaps()}/ours`);
      expect(at(after, "data")).toEqual({ mine: "1", theirs: "2" });
      expect(listAt(after, "metadata", "managedFields").map((one) => stringAt(one, "manager"))).toContain(
        "usher",
      );
      // As from a leader that read long ago and resumes now.
      const late = { ...apply, data: { mine: "late" } };
      expect(await write({ apply: late, resourceVersion: versionOf(accepted) })).toBe("conflict");
      expect(await write({ apply: late, resourceVersion: undefined })).toBe("conflict");
      expect(at(await cluster().call("GET", `${configMaps()}/ours`), "data", "mine")).toBe("1");
      const unknown = { ...apply, kind: "Nonsense" };
      expect(await write({ apply: unknown, resourceVersion: undefined })).toMatchObject({
        failed: expect.stringContaining("does not serve the kind Nonsense"),
      });
    });
  });

  test("patches and deletes only the version that it read", async () => {
    const before = await cluster().call("POST", configMaps(), {
      metadata: { name: "theirs" },
      data: { a: "1" },
    });
    const of = { resource: "configmaps", namespace: namespace(), name: "theirs" };
    const old = versionOf(before);
    await withWrites(async (write) => {
      const patch = [{ op: "add", path: "/data/b", value: "2" }] as const;
      const wrote = await write({ patch, of, resourceVersion: old });
      expect(await write({ patch, of, resourceVersion: old })).toBe("conflict");
      const now = await cluster().call("GET", `${configMaps()}/theirs`);
      expect(at(now, "data")).toEqual({ a: "1", b: "2" });
      expect(wrote).toEqual({ wrote: versionOf(now) });
      expect(await write({ delete: of, resourceVersion: old })).toBe("conflict");
      expect(await write({ delete: of, resourceVersion: versionOf(now) })).toBe("done");
      expect(await write({ delete: of, resourceVersion: versionOf(now) })).toBe("done");
      expect(await write({ patch, of, resourceVersion: old })).toBe("conflict");
      const bad = [{ op: "replace", path: "/nowhere/at", value: "2" }] as const;
      await cluster().call("POST", configMaps(), { metadata: { name: "theirs" } });
      expect(await write({ patch: bad, of, resourceVersion: old })).toMatchObject({
        failed: expect.stringContaining("answered 422"),
      });
    });
  });

  test("writes a complete status, only on the version that it read, and reports a kind without a status subresource", async () => {
    await cluster().apply(crd("seats", "Seat", { status: {} }), crd("stools", "Stool", {}));
    const path = (plural: string) => `/apis/${GROUP}/v1/namespaces/${namespace()}/${plural}`;
    for (const [plural, kind] of [
      ["seats", "Seat"],
      ["stools", "Stool"],
    ] as const) {
      await eventually(`${plural} to be served`, async () => {
        const body = { apiVersion: `${GROUP}/v1`, kind, metadata: { name: "one" }, spec: { rows: 1 } };
        return (await cluster().request("POST", path(plural), body)).status === 201;
      });
    }
    const of = { resource: `seats.${GROUP}`, namespace: namespace(), name: "one" };
    const first = versionOf(await cluster().call("GET", `${path("seats")}/one`));
    await withWrites(async (write) => {
      const status = { matched: 3, gone: true };
      expect(await write({ status, of, resourceVersion: first })).toEqual(WROTE);
      expect(await write({ status: { matched: 9 }, of, resourceVersion: first })).toBe("conflict");
      const second = versionOf(await cluster().call("GET", `${path("seats")}/one`));
      expect(await write({ status: { matched: 4 }, of, resourceVersion: second })).toEqual(WROTE);
      const after = await cluster().call("GET", `${path("seats")}/one`);
      expect([at(after, "status"), at(after, "spec")]).toEqual([{ matched: 4 }, { rows: 1 }]);
      const stool = { ...of, resource: `stools.${GROUP}` };
      expect(await write({ status, of: stool, resourceVersion: "1" })).toMatchObject({
        failed: expect.stringContaining("has no status subresource"),
      });
    });
    await cluster().kubectl(["delete", "crd", `seats.${GROUP}`, `stools.${GROUP}`]);
  });

  test("one replica leads; when it releases the lease the next one leads, and a late renewal changes nothing", async () => {
    await withClient(async (client) => {
      const reported: string[] = [];
      const candidate = (identity: string) =>
        new LeaderElection({
          client,
          namespace: namespace(),
          name: "usher",
          identity,
          onStartedLeading: () => void reported.push(`${identity} leads`),
          onStoppedLeading: () => void reported.push(`${identity} ends`),
          onError: (why) => void reported.push(why),
        });
      const [a, b] = [candidate("a"), candidate("b")];
      a.start();
      await eventually("the first to lead", () => a.leading);
      b.start();
      await eventually("the second to see it", () => b.holder === "a");
      expect(b.leading).toBe(false);
      const path = `/apis/coordination.k8s.io/v1/namespaces/${namespace()}/leases/usher`;
      const held = (await cluster().call("GET", path)) as JsonObject;
      await a.stop();
      // Its lease duration is 15 s: only the release can have freed it this soon.
      await eventually("the second to lead", () => b.leading, 10_000);
      expect((await cluster().request("PUT", path, held)).status).toBe(409);
      await b.stop();
      expect(reported).toEqual(["a leads", "a ends", "b leads", "b ends"]);
      expect(at(await cluster().call("GET", path), "spec")).toMatchObject({ leaseTransitions: 1 });
    });
  });

  test("events are written once and counted, and kubectl shows them with their object", async () => {
    const made = await cluster().call("POST", configMaps(), { metadata: { name: "reported" } });
    const policy = {
      kind: "ConfigMap",
      namespace: namespace(),
      name: "reported",
      uid: stringAt(made, "metadata", "uid") ?? "",
    };
    await withClient(async (client) => {
      let now = Date.now();
      const events = new EventRecorder({
        client,
        instance: "usher-0",
        now: () => now,
        clock: () => now,
        apiVersionOf: () => "v1",
      });
      const { uid: _uid, ...regarding } = policy;
      const event = {
        type: "Warning",
        reason: "Skipped",
        message: "was left out",
        regarding,
        policy,
      } as const;
      events.add([event]);
      await events.flush();
      now += 60_000;
      events.add([event, event]);
      await events.flush();
      expect(events.dropped).toBe(0);
    });
    const { items } = (await cluster().call(
      "GET",
      `/apis/events.k8s.io/v1/namespaces/${namespace()}/events`,
    )) as {
      items: Json[];
    };
    const ours = items.filter((item) => stringAt(item, "reason") === "Skipped");
    expect(ours).toMatchObject([
      { note: "was left out", series: { count: 3 }, regarding: { name: "reported" } },
    ]);
    const described = await cluster().kubectl(["-n", namespace(), "describe", "configmap", "reported"]);
    expect(described.stdout).toMatch(/Warning\s+Skipped\s.*was left out/);
  });

  test("an event of usher's maximum length is accepted, and one byte more is not", async () => {
    // Cut at 200 it would end with a dot.
    const regarding = { kind: "ConfigMap", namespace: namespace(), name: `${"long".repeat(50).slice(1)}.b` };
    const path = `/apis/events.k8s.io/v1/namespaces/${namespace()}/events`;
    await withClient(async (client) => {
      const events = new EventRecorder({
        client,
        instance: `${"u".repeat(130)}-0`,
        apiVersionOf: () => "v1",
      });
      const message = `x${"😀".repeat(300)}`;
      events.add([{ type: "Normal", reason: "Long", message, regarding, policy: undefined }]);
      await events.flush();
      expect(events.dropped).toBe(0);
      const { body } = await client.request("GET", path);
      const written = listAt(body, "items").find((item) => stringAt(item, "reason") === "Long");
      const note = stringAt(written, "note") ?? "";
      expect(Buffer.byteLength(note)).toBe(1_024);
      expect(stringAt(written, "reportingInstance")).toBe(`${"u".repeat(126)}-0`);
      const metadata = { name: "longer", namespace: namespace() };
      const longer = { ...(written as JsonObject), metadata, note: `${note}x` };
      const answer = await client.request("POST", path, { body: longer });
      expect(answer).toMatchObject({ status: 422, text: expect.stringContaining("at most 1024") });
    });
  });

  test("the leader adds up the counts of replicas, which survive the end of a replica", async () => {
    await withClient(async (client) => {
      const replica = (name: string) => {
        const tallies = new Tallies();
        const options = { client, namespace: namespace(), replica: name, tallies, log: SILENT };
        const policy = { kind: "Policy", name: "a", uid: "u" };
        tallies.add([{ module: "tiny", policy, outcomes: { applied: 2, same: 1 } }], 1_000);
        return {
          publisher: new TallyPublisher(options),
          collector: new TallyCollector({ ...options, counted: () => undefined }),
          of: (collector: TallyCollector) => collector.of("tiny", policy)?.outcomes,
        };
      };
      const [one, two] = [replica("one"), replica("two")];
      await one.publisher.publish();
      await two.publisher.publish();
      await one.collector.collect();
      expect(one.of(one.collector)).toEqual({ applied: 4, same: 2 });
      await two.publisher.stop();
      await one.collector.collect();
      expect(one.of(one.collector)).toEqual({ applied: 4, same: 2 });
    });
  });
});
