// Behaviour while usher is down: closed if the node may be a protected one, open everywhere else, and a cold start
// needs nothing.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { listAt, stringAt } from "../../../src/core/json.ts";
import { ROOT } from "../../cli/usher.ts";
import { ADMIN } from "../../cluster/access/identity.ts";
import { eventually } from "../../cluster/access/wait.ts";
import type { Cluster } from "../../cluster/cluster.ts";
import { ON_CP } from "./rows.ts";
import { EVERYTHING, type GuardStage, SCHEDULER, SPEC, SRE } from "./stage.ts";

const NODES = ["cp-0", "cp-1", "w-0", "w-1"];
const NOT_READY = "node.kubernetes.io/not-ready";

export function awayTests(stage: GuardStage, cluster: () => Cluster): void {
  test("row 62, down in Enable without the fallback: assignments and binds to protected nodes fail, others pass", async () => {
    const pods = await Promise.all([stage.waiting(), stage.waiting("kube-system"), stage.waiting()]);
    await stage.scaleUsher(0);
    expect((await stage.pod(ON_CP)).status).toBe(500);
    expect((await stage.pod({ ...SPEC, nodeName: "w-0" })).status).toBe(201);
    expect((await stage.bind(pods[0], SCHEDULER)).status).toBe(500);
    expect((await stage.bind(pods[2], SCHEDULER, { target: { kind: "Node", name: "w-0" } })).status).toBe(
      201,
    );
    expect((await stage.bind(pods[1], SCHEDULER, { namespace: "kube-system" })).status).toBe(201);
    expect((await stage.pod({ ...SPEC, nodeSelector: { none: "such" } })).status).toBe(201);
    expect((await stage.pod(ON_CP, { namespace: "kube-system", as: SRE })).status).toBe(201);
    // Node label hooks fail open, otherwise no node could join.
    const labels = { metadata: { labels: { any: "label" } } };
    expect((await cluster().request("PATCH", "/api/v1/nodes/w-1", labels, ADMIN)).status).toBe(200);
  }, 60_000);

  test("cold start: no replica, hooks registered, nodes wait for a CNI in a listed namespace; everything starts", async () => {
    const node = (name: string) => cluster().call("GET", `/api/v1/nodes/${name}`);
    const ready = async (name: string, status: "True" | "False") => {
      const conditions = listAt(await node(name), "status", "conditions").filter(
        (one) => stringAt(one, "type") !== "Ready",
      );
      const mark = {
        type: "Ready",
        status,
        reason: "Kubelet",
        message: status === "True" ? "the CNI to be up" : "cni plugin not initialized",
      };
      await cluster().call("PATCH", `/api/v1/nodes/${name}/status`, {
        status: { conditions: [...conditions, mark] },
      });
    };
    const tainted = async (name: string) =>
      listAt(await node(name), "spec", "taints").some((taint) => stringAt(taint, "key") === NOT_READY);
    await Promise.all(NODES.map((name) => ready(name, "False")));
    await eventually("every node to be tainted", async () =>
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

  test("the runbook's commands open the cluster while usher is down", async () => {
    await stage.scaleUsher(0);
    const onProtected = async () => (await stage.pod(ON_CP, { query: "?dryRun=All" })).status;
    expect(await onProtected()).toBe(500);
    const runbook = readFileSync(join(ROOT, "src/modules/node-guard/README.md"), "utf8");
    const [, block = ""] = /^```sh emergency\n([\s\S]*?)^```/m.exec(runbook) ?? [];
    const commands = block.split("\n").filter((line) => line.startsWith("kubectl "));
    expect(commands.length).toBeGreaterThan(0);
    for (const line of commands) {
      const done = await cluster().kubectl(line.split(" ").slice(1));
      expect(done, `${line}: ${done.stderr}`).toMatchObject({ code: 0 });
    }
    await eventually("the cluster to be open", async () => (await onProtected()) === 201);
    // Once usher is back it closes the hooks again.
    await stage.scaleUsher(1);
    await eventually(
      "the guard",
      async () => (await stage.pod(ON_CP, { query: "?dryRun=All" })).status === 403,
      60_000,
    );
  }, 120_000);
}
