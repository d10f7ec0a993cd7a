import { expect, test } from "vitest";
import { at, listAt, stringAt } from "../../src/core/json.ts";
import { eventually } from "./access/wait.ts";
import { describeCluster, testNamespace } from "./describe.ts";

describeCluster("a shared cluster", (cluster) => {
  const namespace = testNamespace(cluster);

  test("reports the version that it was built from", async () => {
    const version = await cluster().call("GET", "/version");
    expect(stringAt(version, "gitVersion")).toMatch(/^v1\.\d+\.\d+$/);
    expect(stringAt(version, "minor")).toMatch(/^\d+$/);
  });

  test("the real scheduler places a pod on the fitting node, where it runs", async () => {
    await cluster().createNode("nodes-plain");
    await cluster().createNode("nodes-disk", { labels: { disk: "fast" } });
    const pods = `/api/v1/namespaces/${namespace()}/pods`;
    await cluster().call("POST", pods, {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: "web" },
      spec: { nodeSelector: { disk: "fast" }, containers: [{ name: "web", image: "web" }] },
    });
    const pod = await eventually("the pod Running", async () => {
      const found = await cluster().call("GET", `${pods}/web`);
      return stringAt(found, "status", "phase") === "Running" && found;
    });
    expect(stringAt(pod, "spec", "nodeName")).toBe("nodes-disk");
    expect(stringAt(pod, "status", "podIP")).toMatch(/^10\.244\./);
  });

  test("a node in state Unknown becomes ready again, and one that is not ready stays so", async () => {
    const status = async (name: string) => {
      const found = await cluster().call("GET", `/api/v1/nodes/${name}`);
      return listAt(found, "status", "conditions").find((one) => at(one, "type") === "Ready");
    };
    const wrote = async (name: string, ready: string) => {
      await cluster().createNode(name);
      const conditions = [{ type: "Ready", status: ready, reason: "Test" }];
      await cluster().call("PATCH", `/api/v1/nodes/${name}/status`, { status: { conditions } });
    };
    await wrote("nodes-down", "False");
    await wrote("nodes-slept", "Unknown");
    await eventually("ready again", async () => at(await status("nodes-slept"), "status") === "True");
    expect(await status("nodes-down")).toMatchObject({ status: "False", reason: "Test" });
  });

  test("a pod that fits nowhere stays pending, with the reason", async () => {
    await cluster().createNode("nodes-small", {
      labels: { size: "small" },
      capacity: { cpu: "1", memory: "1Gi", pods: "10" },
    });
    const pods = `/api/v1/namespaces/${namespace()}/pods`;
    await cluster().call("POST", pods, {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: "large" },
      spec: {
        nodeSelector: { size: "small" },
        containers: [{ name: "large", image: "large", resources: { requests: { cpu: "2" } } }],
      },
    });
    const why = await eventually("the scheduler's verdict", async () =>
      stringAt(await cluster().call("GET", `${pods}/large`), "status", "conditions", 0, "message"),
    );
    expect(why).toContain("Insufficient cpu");
  });

  test("controllers run: a Deployment creates pods, and a deleted one is replaced", async () => {
    const run = (...args: readonly string[]) => cluster().kubectl(["-n", namespace(), ...args]);
    expect((await run("create", "deployment", "site", "--image=site", "--replicas=2")).code).toBe(0);
    expect((await run("rollout", "status", "deployment/site", "--timeout=60s")).code).toBe(0);
    const podNames = async () => {
      const { code, stdout } = await run("get", "pods", "-l", "app=site", "-o", "name");
      expect(code).toBe(0);
      return stdout.split("\n").filter((name) => name !== "");
    };
    const names = await podNames();
    expect(names).toHaveLength(2);
    const [first = "", second = ""] = names;
    expect((await run("delete", first)).code).toBe(0);
    // The rollout counts as complete until the controller has seen the deletion, so the test waits for the pods
    // themselves.
    const after = await eventually("a replacement for the deleted pod", async () => {
      const now = await podNames();
      return now.length === 2 && !now.includes(first) && now;
    });
    expect(after).toContain(second);
  });
});
