// Labels of nodes, end to end: usher as an administrator installs it, nodes as kubelets and administrators create them.
import { createInterface } from "node:readline";
import { setTimeout as pause } from "node:timers/promises";
import { beforeAll, describe, expect, test } from "vitest";
import { at, type Json, type JsonObject, listAt, stringAt } from "../../src/core/json.ts";
import { program } from "../cli/usher.ts";
import { type Identity, nodeIdentity } from "../cluster/access/identity.ts";
import { eventually } from "../cluster/access/wait.ts";
import { describeOwnCluster } from "../cluster/describe.ts";
import { configured, install as installUsher } from "./fixtures/install.ts";

const API = "/apis/node-labels.openshift.io/v1beta1";
const RULES = `${API}/namespaces/default/labels`;
const OWNED = `${API}/namespaces/default/ownedlabels`;
const NODES = "/api/v1/nodes";
const USHER = "system:serviceaccount:usher-system:usher";
const FOO1 = "test.openshift.io/foo1";
const FOO2 = "test.openshift.io/foo2";

/** Not the watchdog, which is in the same namespace. */
const REPLICAS =
  "/api/v1/namespaces/usher-system/pods?labelSelector=app.kubernetes.io%2Fcomponent%3Dadmission";

describeOwnCluster("labels of nodes", {}, (cluster) => {
  const object = (kind: string, name: string, spec: JsonObject, metadata: JsonObject = {}): JsonObject => ({
    apiVersion: "node-labels.openshift.io/v1beta1",
    kind,
    metadata: { name, namespace: "default", ...metadata },
    spec,
  });
  /** Writes a complete object, whether or not it exists. */
  const put = async (collection: string, wanted: JsonObject): Promise<void> => {
    const metadata = wanted["metadata"] as JsonObject;
    const path = `${collection}/${String(metadata["name"])}`;
    // Usher may write its status in between.
    await eventually(`${path} written`, async () => {
      const { status, body } = await cluster().request("GET", path);
      if (status === 404) return (await cluster().request("POST", collection, wanted)).status === 201;
      const resourceVersion = stringAt(body, "metadata", "resourceVersion") ?? "";
      const put = { ...wanted, metadata: { ...metadata, resourceVersion } };
      return (await cluster().request("PUT", path, put)).status === 200;
    });
  };
  const rule = (name: string, patterns: string[], labels: JsonObject, more: JsonObject = {}) =>
    put(RULES, object("Labels", name, { nodeNamePatterns: patterns, labels, ...more }));
  const owns = (name: string, spec: JsonObject) => put(OWNED, object("OwnedLabels", name, spec));
  const remove = (path: string) => cluster().call("DELETE", path);
  const createNode = (name: string, labels: JsonObject = {}, as?: Identity, spec: JsonObject = {}) =>
    cluster().request(
      "POST",
      NODES,
      { apiVersion: "v1", kind: "Node", metadata: { name, labels }, spec },
      as,
    );
  const node = (name: string): Promise<Json> => cluster().call("GET", `${NODES}/${name}`);
  const label = async (name: string, key: string) => stringAt(await node(name), "metadata", "labels", key);
  const becomes = (name: string, key: string, value: string | undefined): Promise<boolean> =>
    eventually(`${key}=${value} on ${name}`, async () => (await label(name, key)) === value);
  const started = (one: Json) =>
    !listAt(one, "spec", "taints").some((taint) => stringAt(taint, "key") === "usher.dev/starting");
  let marks = 0;
  /** Resolves when usher has finished all earlier work on this node. */
  const stable = async (name: string): Promise<void> => {
    const key = `marks.example.com/m${marks++}`;
    await rule("marker", [name], { [key]: "1" });
    await becomes(name, key, "1");
    await remove(`${RULES}/marker`);
    await eventually("the annotation without it", async () => {
      const note = stringAt(await node(name), "metadata", "annotations", "usher.dev/node-labels") ?? "";
      return !note.includes(key);
    });
  };

  beforeAll(async () => {
    await cluster().createNode("base-0");
    await cluster().createNode("base-1");
  });

  const install = (settings: JsonObject, ...more: readonly string[]) =>
    installUsher(cluster(), ...configured({ modules: { "node-labels": settings } }), ...more);

  beforeAll(async () => {
    await install({ gracePeriodSeconds: 1 });
  });

  describe("at creation", () => {
    beforeAll(async () => {
      await rule("creation", ["du.*one", "n\\d+"], { [FOO1]: "bar1" });
      // Each replica learns of the rule by itself, and either may be called.
      await eventually("the rule in both replicas", async () => {
        const tries = Array.from({ length: 6 }, () =>
          cluster().call("POST", `${NODES}?dryRun=All`, { kind: "Node", metadata: { name: "n0" } }),
        );
        return (await Promise.all(tries)).every(
          (one) => stringAt(one, "metadata", "labels", FOO1) === "bar1",
        );
      });
    });

    test("the first visible event has the labels, and a node that no rule matches has none", async () => {
      const since = stringAt(await cluster().call("GET", NODES), "metadata", "resourceVersion") ?? "";
      const watch = `${NODES}?watch=true&resourceVersion=${since}`;
      const stream = await cluster().client.open("GET", watch);
      const seen = new Map<string, Json>();
      // Exceeded below, on purpose.
      stream.on("error", () => undefined);
      createInterface({ input: stream }).on("line", (line) => {
        const event = JSON.parse(line) as { type: string; object: Json };
        if (event.type === "ADDED") seen.set(stringAt(event.object, "metadata", "name") ?? "", event.object);
      });
      await createNode("dummy-one");
      await createNode("dummy-two");
      await eventually("both events", () => seen.has("dummy-one") && seen.has("dummy-two"));
      stream.destroy();
      expect(stringAt(seen.get("dummy-one"), "metadata", "labels", FOO1)).toBe("bar1");
      expect(stringAt(seen.get("dummy-two"), "metadata", "labels", FOO1)).toBeUndefined();
    });

    test.each([
      ["test.openshift.io/foo", true],
      ["plain", true],
      ["node.kubernetes.io/pool", true],
      ["kubelet.kubernetes.io/x", true],
      ["topology.kubernetes.io/zone", true],
      ["kubernetes.io/os", true],
      ["node-role.kubernetes.io/edge", false],
      ["foo.k8s.io/x", false],
      ["node-restriction.kubernetes.io/x", false],
    ])("a node that registers itself, with a rule for %s", async (key, atCreation) => {
      const name = `self-${key.replace(/[^a-z0-9]/g, "-")}`;
      const labels = { [key]: "1", "self.example.com/known": name };
      const acknowledged = { annotations: { "usher.dev/acknowledge": key } };
      await put(RULES, object("Labels", "self", { nodeNamePatterns: [name], labels }, acknowledged));
      await eventually("the rule in both replicas", async () => {
        const tries = Array.from({ length: 4 }, () =>
          cluster().call("POST", `${NODES}?dryRun=All`, { kind: "Node", metadata: { name } }),
        );
        const known = await Promise.all(tries);
        return known.every((one) => stringAt(one, "metadata", "labels", "self.example.com/known") === name);
      });
      const { status, body } = await createNode(name, {}, nodeIdentity(name));
      expect(`${status} ${stringAt(body, "message") ?? ""}`).toMatch(/^201/);
      expect(stringAt(body, "metadata", "labels", key)).toBe(atCreation ? "1" : undefined);
      // Labels that could not be admitted are held back by the taint, and follow with its removal in one write.
      expect(started(body)).toBe(atCreation);
      await becomes(name, key, "1");
      expect(started(await node(name))).toBe(true);
    });

    test("the taint is accepted beside admitted labels, and removed once the node has its labels", async () => {
      await rule("taint", ["n7"], { "example.com/pool": "edge" }, { startupTaint: true });
      await eventually("a tainted creation", async () => {
        const one = await cluster().call("POST", `${NODES}?dryRun=All`, {
          kind: "Node",
          metadata: { name: "n7" },
        });
        return !started(one);
      });
      const { status } = await createNode("n7", {}, nodeIdentity("n7"));
      expect(status).toBe(201);
      await eventually("the taint gone", async () => started(await node("n7")));
      expect(await label("n7", "example.com/pool")).toBe("edge");
    });

    test("a kubelet's value of a ruled key is replaced, and a rule for a protected key can't be written", async () => {
      const made = await createNode("n8", { [FOO1]: "own", "kubernetes.io/os": "linux" }, nodeIdentity("n8"));
      expect(at(made.body, "metadata", "labels")).toMatchObject({
        [FOO1]: "bar1",
        "kubernetes.io/os": "linux",
      });
      for (const [labels, message] of [
        [{ "kubernetes.io/os": "bsd" }, /USHER-L03/],
        [{ "a.b/c": "not a value" }, /is not a label value/],
      ] as const) {
        const refused = await cluster().request(
          "POST",
          RULES,
          object("Labels", "bad", { nodeNamePatterns: ["x"], labels }),
        );
        expect(refused.status).toBe(422);
        expect(stringAt(refused.body, "message")).toMatch(message);
      }
    });
  });

  describe("writes that are refused", () => {
    test.each<[string, string, JsonObject, RegExp]>([
      [
        "a bad pattern",
        RULES,
        object("Labels", "bad", { nodeNamePatterns: ["worker-["], labels: {} }),
        /at character 8/,
      ],
      [
        "an ownership of everything",
        OWNED,
        object("OwnedLabels", "bad", {}),
        /without them every label would be owned/,
      ],
      [
        "an ownership of an empty domain",
        OWNED,
        object("OwnedLabels", "bad", { domain: "" }),
        /must not be empty/,
      ],
      [
        "an ownership of kubernetes.io",
        OWNED,
        object("OwnedLabels", "bad", { domain: "kubernetes.io" }),
        /acknowledge/,
      ],
    ])("%s", async (_what, path, body, message) => {
      const refused = await cluster().request("POST", path, body);
      expect(refused.status).toBe(422);
      expect(stringAt(refused.body, "message")).toMatch(message);
    });

    test("an acknowledged ownership is accepted", async () => {
      const acknowledged = object(
        "OwnedLabels",
        "ack",
        { domain: "kubernetes.io" },
        { annotations: { "usher.dev/acknowledge": "kubernetes.io" } },
      );
      expect((await cluster().request("POST", `${OWNED}?dryRun=All`, acknowledged)).status).toBe(201);
    });
  });

  describe("upstream's controllers", () => {
    beforeAll(async () => {
      await createNode("first-node");
      await createNode("second-node");
    });

    test("a new rule labels the nodes that it matches", async () => {
      await rule("ctl", ["fi.*ode"], { [FOO1]: "bar1" });
      await becomes("first-node", FOO1, "bar1");
      expect(await label("second-node", FOO1)).toBeUndefined();
    });

    test("without ownership: values follow the rule, keys that it no longer names stay", async () => {
      await rule("ctl", ["fi.*ode"], { [FOO1]: "bar2" });
      await becomes("first-node", FOO1, "bar2");
      await rule("ctl", ["fi.*ode"], { [FOO2]: "bar1" });
      await becomes("first-node", FOO2, "bar1");
      expect(await label("first-node", FOO1)).toBe("bar2");
      await remove(`${RULES}/ctl`);
      await stable("first-node");
      expect(await label("first-node", FOO2)).toBe("bar1");
    });

    test("an ownership that is added later removes keys that no rule covers", async () => {
      await owns("test", { domain: "test.openshift.io" });
      await becomes("first-node", FOO1, undefined);
      await becomes("first-node", FOO2, undefined);
    });

    test("with ownership: keys that the rule no longer names are removed, and so are all keys of a deleted rule", async () => {
      await rule("ctl", ["fi.*ode"], { [FOO1]: "bar1" });
      await becomes("first-node", FOO1, "bar1");
      await rule("ctl", ["fi.*ode"], { [FOO2]: "bar1" });
      await becomes("first-node", FOO2, "bar1");
      await becomes("first-node", FOO1, undefined);
      await remove(`${RULES}/ctl`);
      await becomes("first-node", FOO2, undefined);
    });

    test("a pattern that now matches only part of the name no longer covers the node", async () => {
      await rule("ctl", ["first.*"], { [FOO1]: "1" });
      await becomes("first-node", FOO1, "1");
      await rule("ctl", ["first"], { [FOO1]: "1" });
      await becomes("first-node", FOO1, undefined);
      await remove(`${RULES}/ctl`);
    });

    test("two rules conflict, both report it, and removing the winner applies the other's value", async () => {
      await rule("conflict-a", ["second-.*"], { "q.example.com/k": "a" });
      await rule("conflict-b", [".*-node"], { "q.example.com/k": "b" });
      await becomes("second-node", "q.example.com/k", "a");
      for (const [name, wins] of [
        ["conflict-a", true],
        ["conflict-b", false],
      ] as const) {
        const conflict = await eventually(`the conflict of ${name}`, async () =>
          at(await cluster().call("GET", `${RULES}/${name}`), "status", "conflicts", 0),
        );
        expect(conflict).toMatchObject({ key: "q.example.com/k", wins, nodes: 1 });
      }
      await eventually("an event", async () => {
        const events = listAt(
          await cluster().call("GET", "/apis/events.k8s.io/v1/namespaces/default/events"),
          "items",
        );
        return events.some((event) => at(event, "reason") === "LabelConflict");
      });
      await remove(`${RULES}/conflict-a`);
      await becomes("second-node", "q.example.com/k", "b");
    });

    test("manual changes of ruled labels are repaired, unmanaged ones in an owned domain are removed, others are kept", async () => {
      await rule("ctl", ["first-node"], { [FOO1]: "1" });
      await becomes("first-node", FOO1, "1");
      const patch = (labels: JsonObject) =>
        cluster().call("PATCH", `${NODES}/first-node`, { metadata: { labels } });
      await patch({ [FOO1]: null, "test.openshift.io/unmanaged": "x", "other.example.com/mine": "y" });
      await becomes("first-node", FOO1, "1");
      await becomes("first-node", "test.openshift.io/unmanaged", undefined);
      await patch({ [FOO1]: "manual" });
      await becomes("first-node", FOO1, "1");
      expect(await label("first-node", "other.example.com/mine")).toBe("y");
    });

    test("taints and annotations follow their rule, and another party's taint stays", async () => {
      const theirs = { key: "theirs", effect: "NoSchedule" };
      await cluster().call("PATCH", `${NODES}/second-node`, { spec: { taints: [theirs] } });
      await rule(
        "more",
        ["second-node"],
        {},
        {
          annotations: { "x.example.com/site": "north" },
          taints: [{ key: "dedicated", value: "edge", effect: "NoSchedule" }],
        },
      );
      await eventually(
        "the taint",
        async () => listAt(await node("second-node"), "spec", "taints").length === 2,
      );
      await remove(`${RULES}/more`);
      await eventually(
        "it gone",
        async () => listAt(await node("second-node"), "spec", "taints").length === 1,
      );
      const after = await node("second-node");
      expect(at(after, "spec", "taints", 0)).toMatchObject(theirs);
      expect(stringAt(after, "metadata", "annotations", "x.example.com/site")).toBeUndefined();
    });
  });

  test("upstream's README, step by step", async () => {
    const test1 = (name: string) => `test.openshift.io/${name}`;
    const example = (name: string) => `example.openshift.io/${name}`;
    await rule("sample1", ["worker-0"], {
      [test1("foo1")]: "bar1",
      [example("foo2")]: "bar2",
      [test1("foo3")]: "bar3",
    });
    await rule("sample2", ["worker-0.*"], { [test1("fooOther")]: "barOther" });
    await rule("sample3", ["dummy"], { [test1("dummy")]: "1" });
    await createNode("worker-0");
    await createNode("worker-0-dummy");
    for (const key of [test1("foo1"), example("foo2"), test1("foo3"), test1("fooOther")])
      await eventually(key, async () => (await label("worker-0", key)) !== undefined);
    await becomes("worker-0-dummy", test1("fooOther"), "barOther");
    expect(await label("worker-0-dummy", test1("foo1"))).toBeUndefined();
    const sample = (labels: JsonObject, pattern = "worker-0") => rule("sample1", [pattern], labels);
    await sample({ [test1("foo1")]: "newBar1", [example("foo2")]: "newBar2", [test1("foo3")]: "bar3" });
    await becomes("worker-0", test1("foo1"), "newBar1");
    await becomes("worker-0", example("foo2"), "newBar2");
    await sample({ [test1("newFoo1")]: "x", [example("newFoo2")]: "y", [test1("foo3")]: "bar3" });
    await becomes("worker-0", test1("newFoo1"), "x");
    await becomes("worker-0", test1("foo1"), undefined);
    expect(await label("worker-0", example("newFoo2"))).toBe("y");
    expect(await label("worker-0", example("foo2"))).toBe("newBar2");
    await sample({ [test1("foo3")]: "bar3" });
    await becomes("worker-0", test1("newFoo1"), undefined);
    expect(await label("worker-0", example("newFoo2"))).toBe("y");
    await sample({ [test1("foo3")]: "bar3" }, "worker-1");
    await becomes("worker-0", test1("foo3"), undefined);
    expect(await label("worker-0", test1("fooOther"))).toBe("barOther");
    const nodes = listAt(await cluster().call("GET", NODES), "items");
    expect(nodes.filter((one) => stringAt(one, "metadata", "labels", test1("dummy")) !== undefined)).toEqual(
      [],
    );
  });

  /** The metrics of all replicas: only the leader has figures of plans. */
  const metricsOfAll = async (): Promise<string> => {
    const pods = listAt(await cluster().call("GET", REPLICAS), "items");
    const texts = pods.map(async (pod) => {
      const port = await cluster().localPort(stringAt(pod, "status", "podIP") ?? "", 8080);
      return (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
    });
    return (await Promise.all(texts)).join("\n");
  };

  test("a node that can't be written does not block others, and the rule's status names it", async () => {
    const bindings = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings";
    const group = "admissionregistration.k8s.io/v1";
    await cluster().apply(
      {
        apiVersion: group,
        kind: "ValidatingAdmissionPolicy",
        metadata: { name: "stuck" },
        spec: {
          matchConstraints: {
            resourceRules: [
              { apiGroups: [""], apiVersions: ["v1"], operations: ["UPDATE"], resources: ["nodes"] },
            ],
          },
          validations: [{ expression: "object.metadata.name != 'fail-3'", message: "not this one" }],
        },
      },
      {
        apiVersion: group,
        kind: "ValidatingAdmissionPolicyBinding",
        metadata: { name: "stuck" },
        spec: { policyName: "stuck", validationActions: ["Deny"] },
      },
    );
    for (let i = 0; i < 6; i++) await createNode(`fail-${i}`);
    await eventually("the refusal", async () => {
      const path = `${NODES}/fail-3?dryRun=All`;
      return (await cluster().request("PATCH", path, { metadata: { labels: { x: "y" } } })).status === 422;
    });
    await rule("fail", ["fail-.*"], { "f.example.com/k": "1" });
    for (const i of [0, 1, 2, 4, 5]) await becomes(`fail-${i}`, "f.example.com/k", "1");
    const status = await eventually("the error in the status", async () => {
      const found = at(await cluster().call("GET", `${RULES}/fail`), "status");
      return stringAt(found, "lastError") === undefined ? undefined : found;
    });
    expect(status).toMatchObject({ matchedNodes: 6, lastError: expect.stringContaining("fail-3") });
    expect(await label("fail-3", "f.example.com/k")).toBeUndefined();
    const figures = await metricsOfAll();
    expect(figures).toContain('usher_plan_items_failing{module="node-labels"} 1\n');
    expect(figures).toMatch(
      /usher_plan_writes_total\{module="node-labels",resource="nodes",result="failed"\} [1-9]/,
    );
    expect(figures).toMatch(/usher_plan_items\{state="later"\} [1-9]/);
    await remove(`${bindings}/stuck`);
    await becomes("fail-3", "f.example.com/k", "1");
    await eventually(
      "the error gone",
      async () => stringAt(await cluster().call("GET", `${RULES}/fail`), "status", "lastError") === undefined,
    );
  });

  test("a changed rule causes work only on the nodes that it affects", async () => {
    const names = Array.from({ length: 40 }, (_, i) => `fleet-${i}`);
    await rule("fleet", ["fleet-.*"], { "fleet.example.com/k": "1" });
    await rule("part", ["fleet-1.*"], { "part.example.com/k": "1" });
    await eventually("both known", async () => {
      const tries = Array.from({ length: 4 }, () =>
        cluster().call("POST", `${NODES}?dryRun=All`, { kind: "Node", metadata: { name: "fleet-1" } }),
      );
      return (await Promise.all(tries)).every(
        (one) => stringAt(one, "metadata", "labels", "part.example.com/k") === "1",
      );
    });
    await Promise.all(names.map((name) => createNode(name)));
    await stable("fleet-0");
    const calls = () =>
      cluster()
        .auditLog()
        .flatMap(({ user, verb, objectRef, responseStatus }) => {
          const { resource, name = "", subresource } = objectRef ?? {};
          if (resource !== "nodes" || subresource !== undefined) return [];
          const own = user.username === USHER && (verb === "get" || verb === "patch");
          if (!own && verb !== "patch" && verb !== "update") return [];
          return [{ name, own, call: `${verb} ${responseStatus?.code}` }];
        });
    // The control plane writes new nodes, too: counting begins when that is over.
    const before = await eventually("idle nodes", async () => {
      const so = calls().length;
      await pause(2_000);
      return calls().length === so ? so : undefined;
    });
    await rule("part", ["fleet-1.*"], { "part.example.com/k": "2" });
    const touched = names.filter((name) => name.startsWith("fleet-1"));
    for (const name of touched) await becomes(name, "part.example.com/k", "2");
    const since = calls().slice(before);
    const made = since.filter(({ own }) => own);
    expect(new Set(made.map(({ name }) => name))).toEqual(new Set(touched));
    for (const node of touched) {
      const work = made.filter(({ name }) => name === node).map(({ call }) => call);
      // Another write of the node makes usher reconcile it again, and plan a patch that conflicts again.
      const alone = since.every(({ name, own }) => own || name !== node);
      expect(
        work.filter((call) => call === "patch 200"),
        node,
      ).toHaveLength(1);
      if (alone) expect(work, node).toEqual(["get 200", "patch 200"]);
    }
  });

  test("a preview prints the planned changes", async () => {
    await createNode("plan-0", { "test.openshift.io/unmanaged": "1" });
    await becomes("plan-0", "test.openshift.io/unmanaged", undefined);
    const kubeconfig = await cluster().kubeconfig();
    const clean = await program(["node-labels", "plan", "--cluster", "--kubeconfig", kubeconfig]);
    expect(clean.out).toMatch(/no changes: nodes match the policies/);
    expect(clean.code).toBe(0);
  });

  describe("permissions to write rules", () => {
    const bind = (name: string, { user }: Identity, role: string) => {
      const to = [`--clusterrole=${role}`, `--user=${user}`];
      return cluster().kubectl(["create", "rolebinding", name, "-n", "default", ...to]);
    };

    test.each(["admin", "edit"])("are not included in a namespace's %s", async (role) => {
      const who = { user: `jane-${role}` };
      expect((await bind(who.user, who, role)).code).toBe(0);
      await eventually(
        "the binding to take effect",
        async () => (await cluster().request("GET", RULES, undefined, who)).status === 200,
      );
      const body = object("Labels", `by-${role}`, { nodeNamePatterns: ["x"], labels: {} });
      expect((await cluster().request("POST", `${RULES}?dryRun=All`, body, who)).status).toBe(403);
    });

    test("need the role for rules, not the one for other policies", async () => {
      for (const [role, status] of [
        ["usher-policies-edit", 403],
        ["usher-cluster-policies-edit", 201],
      ] as const) {
        const who = { user: `jane-${role}` };
        await bind(who.user, who, role);
        await bind(`${who.user}-view`, who, "view");
        await eventually(
          "the bindings to take effect",
          async () => (await cluster().request("GET", RULES, undefined, who)).status === 200,
        );
        const body = object("Labels", "by-role", { nodeNamePatterns: ["x"], labels: {} });
        await eventually(
          `${role}: ${status}`,
          async () => (await cluster().request("POST", `${RULES}?dryRun=All`, body, who)).status === status,
        );
      }
    });
  });

  test("migration: upstream's finalizer is removed, and its live webhook is reported", async () => {
    const finalizer = "node-label-operator.openshift.io/finalizer";
    await put(
      RULES,
      object(
        "Labels",
        "stored",
        { nodeNamePatterns: ["x"], labels: { "a.b/c": "1" } },
        { finalizers: [finalizer] },
      ),
    );
    await remove(`${RULES}/stored`);
    await eventually(
      "it gone",
      async () => (await cluster().request("GET", `${RULES}/stored`)).status === 404,
    );
    await cluster().apply({
      apiVersion: "admissionregistration.k8s.io/v1",
      kind: "MutatingWebhookConfiguration",
      metadata: { name: "mnode.kb.io-x7f2p" },
      webhooks: [
        {
          name: "mnode.kb.io",
          clientConfig: {
            service: { name: "node-label-operator", namespace: "default", path: "/label-v1-nodes" },
          },
          failurePolicy: "Ignore",
          sideEffects: "None",
          admissionReviewVersions: ["v1"],
          timeoutSeconds: 1,
          rules: [
            {
              apiGroups: ["other.example.com"],
              apiVersions: ["v1"],
              operations: ["CREATE"],
              resources: ["nodes"],
            },
          ],
        },
      ],
    });
    await eventually("the condition", async () =>
      listAt(await cluster().call("GET", `${RULES}/fleet`), "status", "conditions").some(
        (one) => at(one, "type") === "Alone" && at(one, "status") === "False",
      ),
    );
    await remove("/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/mnode.kb.io-x7f2p");
  });

  test("while usher is down nodes join, and are labelled soon after it is back", async () => {
    const deployment = "/apis/apps/v1/namespaces/usher-system/deployments/usher";
    // As if its machines had died: the lease is not released, and the next leader waits until it has expired.
    await cluster().call("DELETE", `${REPLICAS}&gracePeriodSeconds=1`);
    await cluster().call("PATCH", deployment, { spec: { replicas: 0 } });
    await eventually(
      "no replica",
      async () => listAt(await cluster().call("GET", REPLICAS), "items").length === 0,
      90_000,
    );
    const hooks = await cluster().call(
      "GET",
      "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/usher",
    );
    expect(
      listAt(hooks, "webhooks")
        .map((one) => stringAt(one, "name"))
        .join(),
    ).toContain("node-labels");
    expect((await createNode("n77", {}, nodeIdentity("n77"))).status).toBe(201);
    expect((await createNode("fleet-77")).status).toBe(201);
    expect(await label("fleet-77", "fleet.example.com/k")).toBeUndefined();
    await cluster().call("PATCH", deployment, { spec: { replicas: 1 } });
    await becomes("fleet-77", "fleet.example.com/k", "1");
    await becomes("n77", FOO1, "bar1");
  });

  /** Nodes that usher can't write until this is undone; it can write others. */
  const keptFromUsher = async (pool: string): Promise<() => Promise<unknown>> => {
    const apiVersion = "admissionregistration.k8s.io/v1";
    const metadata = { name: `kept-${pool}` };
    const rules = [{ apiGroups: [""], apiVersions: ["v1"], operations: ["UPDATE"], resources: ["nodes"] }];
    const expression = `request.userInfo.username != '${USHER}' || !object.metadata.name.startsWith('${pool}-')`;
    const validations = [{ expression, message: "not yet" }];
    const spec = { matchConstraints: { resourceRules: rules }, validations };
    const bound = { policyName: metadata.name, validationActions: ["Deny"] };
    await cluster().apply(
      { apiVersion, kind: "ValidatingAdmissionPolicy", metadata, spec },
      { apiVersion, kind: "ValidatingAdmissionPolicyBinding", metadata, spec: bound },
    );
    const as = { user: USHER, groups: ["system:masters"] };
    const path = `${NODES}/base-0?dryRun=All`;
    await eventually("the refusal", async () => {
      const name = `${pool}-probe`;
      await createNode(name);
      const tried = await cluster().request(
        "PATCH",
        `${NODES}/${name}?dryRun=All`,
        { metadata: { labels: { x: "y" } } },
        as,
      );
      return tried.status === 422;
    });
    expect((await cluster().request("PATCH", path, { metadata: { labels: { x: "y" } } }, as)).status).toBe(
      200,
    );
    return () => remove(`/apis/${apiVersion}/validatingadmissionpolicybindings/${metadata.name}`);
  };
  const starting = { taints: [{ key: "usher.dev/starting", effect: "NoSchedule" }] };

  test("usher had all permissions that it needed", () => {
    const refused = cluster()
      .auditLog()
      .filter(({ user, responseStatus }) => user.username === USHER && responseStatus?.code === 403);
    expect(refused.map(({ verb, objectRef }) => `${verb} ${objectRef?.resource}/${objectRef?.name}`)).toEqual(
      [],
    );
  });

  test("when disabled, its values on nodes are removed first, and then usher can't change nodes any more", async () => {
    await rule("stays", ["stays-\\d"], { "stays.example.com/k": "1" });
    await createNode("stays-0");
    await becomes("stays-0", "stays.example.com/k", "1");
    await keptFromUsher("off");
    await createNode("off-0", {}, undefined, starting);
    const allowed = async (verb: string, resource: string) => {
      const review = await cluster().call("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", {
        apiVersion: "authorization.k8s.io/v1",
        kind: "SubjectAccessReview",
        spec: { user: USHER, groups: ["system:serviceaccounts"], resourceAttributes: { verb, resource } },
      });
      return at(review, "status", "allowed");
    };
    expect(await allowed("patch", "nodes")).toBe(true);
    const off = { enabled: false };
    const modules = configured({ modules: { "node-labels": off, "pod-os": off } });
    const plan = await installUsher(cluster(), ...modules, "--replicas", "1");
    expect(plan).toMatch(/Node off-0 +free +without the taint usher\.dev\/starting/);
    expect(started(await node("off-0"))).toBe(true);
    // Placement counts the nodes that a policy selects.
    expect([await allowed("patch", "nodes"), await allowed("list", "nodes")]).toEqual([false, true]);
    await eventually("no webhook for nodes", async () => {
      const hooks = await cluster().call(
        "GET",
        "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/usher",
      );
      return !JSON.stringify(listAt(hooks, "webhooks")).includes("node-labels");
    });
    await createNode("stays-1");
    expect(await label("stays-1", "stays.example.com/k")).toBeUndefined();
    expect(await label("stays-0", "stays.example.com/k")).toBe("1");
    const input = JSON.stringify(
      object("Labels", "idle", { nodeNamePatterns: ["x"], labels: { "a.b/c": "1" } }),
    );
    expect((await cluster().kubectl(["apply", "-f", "-"], { input })).code).toBe(0);
    // A node whose kubelet registers it with the taint: the command frees it.
    await createNode("late-0", {}, undefined, starting);
    const kubeconfig = await cluster().kubeconfig();
    const dry = await program(["cleanup", "--kubeconfig", kubeconfig, "--dry-run"]);
    expect(dry.out).toMatch(/Node late-0 +free/);
    expect(started(await node("late-0"))).toBe(false);
    const gone = await program(["cleanup", "--kubeconfig", kubeconfig]);
    expect(`${gone.code} ${gone.err}`).toMatch(/^0 /);
    expect(started(await node("late-0"))).toBe(true);
  });

  test("uninstalling usher leaves the startup taint on no node", async () => {
    await keptFromUsher("last");
    await createNode("last-0", { "kept.example.com/k": "1" }, undefined, starting);
    const kubeconfig = await cluster().kubeconfig();
    const dry = await program(["uninstall", "--kubeconfig", kubeconfig, "--dry-run"]);
    expect(dry.out).toMatch(/Node last-0 +free +without the taint usher\.dev\/starting/);
    expect(started(await node("last-0"))).toBe(false);
    const gone = await program(["uninstall", "--kubeconfig", kubeconfig]);
    expect(`${gone.code} ${gone.err}`).toMatch(/^0 /);
    expect(started(await node("last-0"))).toBe(true);
    expect(await label("last-0", "kept.example.com/k")).toBe("1");
  });
});
