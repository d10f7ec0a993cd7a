// What happens while usher is away: closed where the issue is a protected node, open everywhere else, and a cold start needs nobody.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { at, type Json, type JsonObject, listAt, stringAt } from "../../src/core/json.ts";
import { ROOT } from "../cli/usher.ts";
import { ADMIN } from "../cluster/access/identity.ts";
import { eventually } from "../cluster/access/wait.ts";
import { describeOwnCluster } from "../cluster/describe.ts";
import { EVERYTHING, GuardStage, SCHEDULER, SPEC, SRE } from "./fixtures/guard-stage.ts";
import { CRDS } from "./fixtures/installed-objects.ts";

const ON_CP: JsonObject = { ...SPEC, nodeName: "cp-0" };
const SCHEDULERS = `${CRDS}/schedulers.config.openshift.io`;
const NODES = ["cp-0", "cp-1", "w-0", "w-1"];
const NOT_READY = "node.kubernetes.io/not-ready";

/** As OpenShift has it, in little. */
const OPENSHIFT_CRD: JsonObject = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: "schedulers.config.openshift.io", annotations: { owner: "cluster-version-operator" } },
  spec: {
    group: "config.openshift.io",
    names: { kind: "Scheduler", listKind: "SchedulerList", plural: "schedulers", singular: "scheduler" },
    scope: "Cluster",
    versions: [
      {
        name: "v1",
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: {
            type: "object",
            properties: { spec: { type: "object", properties: { mastersSchedulable: { type: "boolean" } } } },
          },
        },
      },
    ],
  },
};

/** The seed's own YAML. */
const SEED: JsonObject = {
  apiVersion: "config.openshift.io/v1",
  kind: "Scheduler",
  metadata: { name: "cluster" },
  spec: {
    mastersSchedulable: false,
    schedulingGroups: [
      {
        name: "ControlPlane",
        mode: "Inform",
        authorizedUsers: ["system:vendor:xxx-serviceaccount", "system:vendor:yyy-serviceaccount"],
      },
    ],
  },
};

describeOwnCluster("node-guard without usher", {}, (cluster) => {
  const stage = new GuardStage(cluster);

  test("an existing Scheduler CRD is left as it is, also where usher would ship one", async () => {
    await stage.prepare();
    await cluster().call("POST", CRDS, OPENSHIFT_CRD);
    const version = async () =>
      stringAt(await cluster().call("GET", SCHEDULERS), "metadata", "resourceVersion");
    const established = async () =>
      listAt(await cluster().call("GET", SCHEDULERS), "status", "conditions").some(
        (one) => stringAt(one, "type") === "Established" && stringAt(one, "status") === "True",
      );
    await eventually("the CRD is established", established);
    const before = await version();
    await stage.install({ schedulerCRD: true });
    await stage.namespaces("team-a", "cni");
    await stage.mode("Enable");
    expect(await version()).toBe(before);
    const managers = listAt(await cluster().call("GET", SCHEDULERS), "metadata", "managedFields");
    expect(managers.map((one) => stringAt(one, "manager"))).not.toContain("usher");
  }, 120_000);

  test("row 62, away in Enable: assignments and binds fail, other pods are created, the control plane binds", async () => {
    const pods = await Promise.all([stage.waiting(), stage.waiting("kube-system")]);
    await stage.scaleUsher(0);
    expect((await stage.pod(ON_CP)).status).toBe(500);
    expect((await stage.pod({ ...SPEC, nodeName: "w-0" })).status).toBe(500);
    expect((await stage.bind(pods[0], SCHEDULER)).status).toBe(500);
    expect((await stage.bind(pods[1], SCHEDULER, { namespace: "kube-system" })).status).toBe(201);
    expect((await stage.pod({ ...SPEC, nodeSelector: { none: "such" } })).status).toBe(201);
    expect((await stage.pod(ON_CP, { namespace: "kube-system", as: SRE })).status).toBe(201);
    // Labels of nodes fail open, or no node could join.
    const labels = { metadata: { labels: { any: "label" } } };
    expect((await cluster().request("PATCH", "/api/v1/nodes/w-1", labels, ADMIN)).status).toBe(200);
  }, 60_000);

  test("cold start: no replica, hooks registered, nodes wait for a CNI in a listed namespace; all comes up", async () => {
    const node = (name: string) => cluster().call("GET", `/api/v1/nodes/${name}`);
    const ready = async (name: string, status: "True" | "False") => {
      const conditions = listAt(await node(name), "status", "conditions").filter(
        (one) => stringAt(one, "type") !== "Ready",
      );
      const mark = {
        type: "Ready",
        status,
        reason: "Kubelet",
        message: status === "True" ? "CNI is up" : "cni plugin not initialized",
      };
      await cluster().call("PATCH", `/api/v1/nodes/${name}/status`, {
        status: { conditions: [...conditions, mark] },
      });
    };
    const tainted = async (name: string) =>
      listAt(await node(name), "spec", "taints").some((taint) => stringAt(taint, "key") === NOT_READY);
    await Promise.all(NODES.map((name) => ready(name, "False")));
    await eventually("every node is tainted", async () =>
      (await Promise.all(NODES.map(tainted))).every(Boolean),
    );
    await cluster().call("PATCH", "/apis/apps/v1/namespaces/usher-system/deployments/usher", {
      spec: { replicas: 1 },
    });
    // Two seconds in which nothing may run: there is no network.
    const labels = { app: "cni" };
    await cluster().call("POST", "/apis/apps/v1/namespaces/cni/daemonsets", {
      metadata: { name: "cni" },
      spec: {
        selector: { matchLabels: labels },
        template: { metadata: { labels }, spec: { ...SPEC, ...EVERYTHING, hostNetwork: true } },
      },
    });
    // The stand-in for four kubelets: a node is ready once the CNI's pod runs on it.
    await eventually(
      "a CNI on every node",
      async () => {
        const running = (await stage.pods("cni")).filter(
          (pod) => stringAt(pod, "status", "phase") === "Running",
        );
        for (const pod of running) await ready(stringAt(pod, "spec", "nodeName") ?? "", "True");
        return running.length === NODES.length;
      },
      60_000,
    );
    await stage.scaleUsher(1);
    await eventually(
      "the guard",
      async () => (await stage.pod(ON_CP, { query: "?dryRun=All" })).status === 403,
    );
  }, 120_000);

  test("the runbook's commands open the cluster while usher is away", async () => {
    await stage.scaleUsher(0);
    expect((await stage.pod({ ...SPEC, nodeName: "w-0" })).status).toBe(500);
    const runbook = readFileSync(join(ROOT, "src/modules/node-guard/README.md"), "utf8");
    const [, block = ""] = /^```sh emergency\n([\s\S]*?)^```/m.exec(runbook) ?? [];
    const commands = block.split("\n").filter((line) => line.startsWith("kubectl "));
    expect(commands.length).toBeGreaterThan(0);
    for (const line of commands) {
      const done = await cluster().kubectl(line.split(" ").slice(1));
      expect(done, `${line}: ${done.stderr}`).toMatchObject({ code: 0 });
    }
    await eventually(
      "the cluster is open",
      async () => (await stage.pod({ ...SPEC, nodeName: "w-0" })).status === 201,
    );
    // Once usher is back it closes again, unaided.
    await stage.scaleUsher(1);
    await eventually(
      "the guard",
      async () => (await stage.pod(ON_CP, { query: "?dryRun=All" })).status === 403,
      60_000,
    );
  }, 120_000);

  test("Inform admits and says so on the pod; row 63, away in Inform: all pass, and the audit log says so", async () => {
    await stage.mode("Inform");
    const name = stage.name();
    expect((await stage.pod(ON_CP, { metadata: { name } })).status).toBe(201);
    const bound = await stage.waiting();
    expect((await stage.bind(bound, SCHEDULER)).status).toBe(201);
    for (const pod of [name, bound])
      await eventually(`an event of pod ${pod}`, async () => {
        const { stdout } = await cluster().kubectl(["-n", "team-a", "describe", "pod", pod]);
        return /Warning .*usher/.test(stdout) && stdout.includes("ControlPlane");
      });
    await stage.scaleUsher(0);
    const away = stage.name();
    expect((await stage.pod(ON_CP, { metadata: { name: away } })).status).toBe(201);
    await eventually("failed-open in the audit log", () =>
      cluster()
        .auditLog()
        .some(
          ({ objectRef, annotations = {} }) =>
            objectRef?.name === away &&
            Object.keys(annotations).some((key) => key.startsWith("failed-open.validating")),
        ),
    );
    await stage.scaleUsher(1);
  }, 120_000);

  test("without another owner usher ships the Scheduler CRD, and the seed's YAML applies unchanged", async () => {
    await cluster().call("DELETE", SCHEDULERS);
    await eventually(
      "usher's own CRD",
      async () => {
        const found = await cluster().request("GET", SCHEDULERS);
        const spec = at(
          found.body as Json,
          "spec",
          "versions",
          0,
          "schema",
          "openAPIV3Schema",
          "properties",
          "spec",
        );
        return found.status === 200 && at(spec, "properties", "schedulingGroups") !== undefined;
      },
      60_000,
    );
    await eventually("the seed applies", async () => {
      await cluster().apply(SEED);
      return true;
    });
    const stored = await cluster().call("GET", "/apis/config.openshift.io/v1/schedulers/cluster");
    expect(at(stored, "spec", "schedulingGroups", 0, "authorizedUsers", 0)).toBe(
      "system:vendor:xxx-serviceaccount",
    );
    await eventually("its entries count", async () => {
      const { json } = await stage.command("list", "--cluster");
      const entries = listAt(listAt(json, "groups")[0], "entries");
      return entries.some(
        (one) =>
          stringAt(one, "origin") === "Scheduler" && stringAt(one, "entry")?.startsWith("system:vendor:"),
      );
    });
  }, 120_000);
});
