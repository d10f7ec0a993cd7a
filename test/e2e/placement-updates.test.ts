// Changes that users and GitOps tools make to workloads that usher has placed: nothing rolls out unexpectedly, and
// nothing is lost.
import { beforeAll, describe, expect, test } from "vitest";
import { at, type Json, type JsonObject, listAt, stringAt } from "../../src/core/json.ts";
import { eventually } from "../cluster/access/wait.ts";
import { describeOwnCluster } from "../cluster/describe.ts";
import { nameIn, originsOf, PlacementStage, podSpecOf, type Said } from "./fixtures/placement-stage.ts";
import { DEDICATED, deployment, HOME, OWN, workload } from "./placing/workloads.ts";

const APPLY = ["apply", "-f", "-"];
const SERVER_SIDE = ["apply", "--server-side", "-f", "-"];

interface State {
  readonly generation: number;
  readonly template: Json;
  /** The names of its ReplicaSets. */
  readonly sets: readonly string[];
}

describeOwnCluster("updates of placed workloads", {}, (cluster) => {
  const stage = new PlacementStage(cluster, "apps");

  /** A Deployment once its controller has observed every change. */
  const stateOf = (name: string): Promise<State> =>
    eventually(`${name} stable`, async () => {
      const found = await stage.get(`deployments/${name}`);
      const generation = Number(at(found, "metadata", "generation"));
      if (at(found, "status", "observedGeneration") !== generation) return undefined;
      const sets = (await stage.items(`replicasets?labelSelector=workload%3D${name}`)).map(nameIn).sort();
      return { generation, template: at(found, "spec", "template") ?? null, sets };
    });

  /** Runs it, and returns the Deployment before and after. */
  const doing = async (
    name: string,
    args: readonly string[],
    input?: JsonObject,
  ): Promise<Said & { before: State; after: State }> => {
    const before = await stateOf(name);
    const said = await stage.kubectl(args, input);
    return { ...said, before, after: await stateOf(name) };
  };

  beforeAll(async () => {
    for (const name of ["w0", "w1"])
      await cluster().createNode(name, { labels: { pool: "etcd", disk: "ssd" } });
    await cluster().createNode("w2", { labels: { pool: "batch" } });
  });

  beforeAll(async () => {
    await stage.install();
    await stage.policies({ home: HOME });
  });

  describe.for([
    ["a manifest without node constraints", "silent", {}],
    ["a manifest that sets the same fields itself", "outspoken", OWN],
  ] as const)("%s", ([, name, own]) => {
    const manifest = deployment(name, "web", own);

    test("is placed once", async () => {
      const { stderr } = await stage.kubectl(APPLY, manifest);
      expect(stderr).toBe("");
      const { generation, sets } = await stateOf(name);
      expect({ generation, sets: sets.length }).toEqual({ generation: 1, sets: 1 });
      const spec = podSpecOf(await stage.get(`deployments/${name}`));
      expect(spec["nodeSelector"]).toEqual({ ...(own === OWN ? { disk: "ssd" } : {}), pool: "etcd" });
      expect(listAt(spec, "tolerations").at(-1)).toEqual(DEDICATED);
      const [term, ...others] = listAt(
        spec,
        ...["affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"],
        "nodeSelectorTerms",
      );
      // The user's requirements first, then the policy's, in the only term.
      expect(listAt(term, "matchExpressions").map((one) => at(one, "key"))).toEqual(
        own === OWN ? ["disk", "pool"] : ["pool"],
      );
      expect(others).toEqual([]);
    });

    test.for([
      ["apply", APPLY, 0],
      ["apply again", APPLY, 0],
      // It removes the annotation of `apply`, and the generation of a Deployment counts annotations too; `apply` writes
      // it again.
      ["replace", ["replace", "-f", "-"], 1],
      ["apply after replace", APPLY, 1],
      ["diff", ["diff", "-f", "-"], 0],
      // The first one writes the annotation of `apply` in its own form.
      ["server-side apply", [...SERVER_SIDE, "--force-conflicts"], 1],
      ["server-side apply again", SERVER_SIDE, 0],
    ] as const)("%s changes nothing", async ([, args, generations]) => {
      const { before, after } = await doing(name, args, manifest);
      expect(after).toEqual({ ...before, generation: before.generation + generations });
    });

    test("annotate and scale keep the template, without a new ReplicaSet", async () => {
      for (const args of [
        ["annotate", `deployment/${name}`, "touched=yes"],
        ["scale", `deployment/${name}`, "--replicas=2"],
      ]) {
        const { before, after } = await doing(name, args);
        expect({ ...after, generation: 0 }).toEqual({ ...before, generation: 0 });
      }
    });

    test("set image rolls out once, with the injection", async () => {
      const { before, after } = await doing(name, ["set", "image", `deployment/${name}`, "c=app:2"]);
      expect(after.sets).toHaveLength(before.sets.length + 1);
      expect(JSON.stringify(after.template)).toBe(
        JSON.stringify(before.template).replace('"app:1"', '"app:2"'),
      );
    });
  });

  test("a patch that removes a part of the injection is reverted, with a warning of the API server", async () => {
    const nothing = { nodeSelector: null, tolerations: null, affinity: null };
    const merge = JSON.stringify({ spec: { template: { spec: nothing } } });
    const remove = ["nodeSelector", "tolerations", "affinity"].map((field) => ({
      op: "remove",
      path: `/spec/template/spec/${field}`,
    }));
    for (const args of [
      ["--type=merge", "-p", merge],
      ["--type=json", "-p", JSON.stringify(remove)],
    ]) {
      const { before, after, stdout } = await doing("silent", ["patch", "deployment/silent", ...args]);
      expect(stdout).toMatch(/patched \(no change\)/);
      expect(after).toEqual(before);
    }
  });

  test("server-side apply of a second manager: its own value stays and is no longer the policy's", async () => {
    const { nodeSelector } = HOME;
    await stage.policies({ shared: { podSelector: { matchLabels: { app: "shared" } }, nodeSelector } });
    await stage.kubectl(SERVER_SIDE, deployment("shared", "shared"));
    const part = {
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: { name: "shared" },
      spec: { template: { spec: { nodeSelector: { pool: "batch" } } } },
    };
    await stage.kubectl(["apply", "--server-side", "--field-manager=other", "-f", "-"], part);
    const found = await stage.get("deployments/shared");
    expect(podSpecOf(found)["nodeSelector"]).toEqual({ pool: "batch" });
    expect(originsOf(found).flatMap(({ set }) => set)).toEqual([]);
    const { before, after } = await doing("shared", SERVER_SIDE, deployment("shared", "shared"));
    expect(after).toEqual(before);
  });

  test("a new policy: neither an identical apply nor an annotation causes a rollout", async () => {
    const late = ["client-late", "server-late"].map((name) => deployment(name, "late", OWN));
    const sets = ["StatefulSet", "DaemonSet"].map((kind) =>
      workload(kind, `late-${kind.toLowerCase()}`, "late"),
    );
    await stage.kubectl(APPLY, late[0]);
    await stage.kubectl(SERVER_SIDE, late[1]);
    for (const set of sets) await stage.kubectl(SERVER_SIDE, set);
    const podsOfSets = async () => {
      const pods = await stage.items("pods?labelSelector=workload%20in%20(late-statefulset,late-daemonset)");
      return pods.map((pod) => stringAt(pod, "metadata", "uid")).sort();
    };
    const made = await eventually("4 pods", async () => {
      const pods = await podsOfSets();
      return pods.length === 4 ? pods : undefined;
    });
    await stage.policies({ late: { ...HOME, podSelector: { matchLabels: { app: "late" } } } });

    const client = await doing("client-late", APPLY, late[0]);
    expect(client.stdout).toMatch(/unchanged/);
    const server = await doing("server-late", SERVER_SIDE, late[1]);
    for (const { before, after } of [client, server]) expect(after).toEqual(before);
    for (const set of sets) {
      await stage.kubectl(SERVER_SIDE, set);
      const plural = `${String(set["kind"]).toLowerCase()}s/${nameIn(set)}`;
      await stage.kubectl(["annotate", plural, "touched=yes"]);
      const found = await stage.get(plural);
      expect(at(found, "metadata", "generation")).toBe(1);
      expect(podSpecOf(found)["nodeSelector"]).toBeUndefined();
    }
    // The controllers have run once they have handled a later workload.
    await stage.kubectl(APPLY, deployment("after-late", "none"));
    await eventually("the controllers' turn", async () => {
      return at(await stage.get("deployments/after-late"), "status", "availableReplicas") === 1;
    });
    expect(await podsOfSets()).toEqual(made);
    // A user's new image rolls out, without new injections.
    const image = await doing("server-late", ["set", "image", "deployment/server-late", "c=app:2"]);
    expect(podSpecOf(await stage.get("deployments/server-late"))["nodeSelector"]).toEqual({ disk: "ssd" });
    expect(image.after.sets).toHaveLength(2);
  });

  test("a changed policy creates no extra ReplicaSet", async () => {
    await stage.policies({ home: { ...HOME, nodeSelector: { pool: "etcd", disk: "ssd" } } });
    for (const args of [
      ["annotate", "--overwrite", "deployment/silent", "touched=again"],
      ["scale", "deployment/silent", "--replicas=1"],
    ]) {
      const { before, after } = await doing("silent", args);
      expect({ ...after, generation: 0 }).toEqual({ ...before, generation: 0 });
    }
    await stage.policies({ home: HOME });
  });

  test("rollout undo restores everything except the injection, with a warning", async () => {
    const inject = { ...HOME, podSelector: { matchLabels: { app: "undo" } }, onUpdate: "Inject" };
    await stage.kubectl(APPLY, deployment("undo", "undo"));
    await stage.kubectl(APPLY, workload("StatefulSet", "undo-set", "undo"));
    const [first] = (await stateOf("undo")).sets;
    await stage.policies({ inject });
    const second = await doing("undo", ["set", "image", "deployment/undo", "c=app:2"]);
    expect(second.after.sets).toHaveLength(2);
    expect(at(second.after.template, "spec", "nodeSelector")).toEqual({ pool: "etcd" });

    await stage.kubectl(["set", "image", "statefulset/undo-set", "c=app:2"]);
    const undone = await doing("undo", ["rollout", "undo", "deployment/undo"]);
    expect(undone.stdout).toMatch(/rolled back/);
    expect(undone.stderr).toMatch(/Warning: .*restored what policy inject had added/);
    expect(at(undone.after.template, "spec", "containers", 0, "image")).toBe("app:1");
    expect(at(undone.after.template, "spec", "nodeSelector")).toEqual({ pool: "etcd" });
    const set = await stage.kubectl(["rollout", "undo", "statefulset/undo-set"]);
    expect(set.stderr).toMatch(/Warning: .*restored what policy inject had added/);
    const { containers, nodeSelector } = podSpecOf(await stage.get("statefulsets/undo-set"));
    expect(containers).toMatchObject([{ image: "app:1" }]);
    expect(nodeSelector).toEqual({ pool: "etcd" });
    // The annotation is correct, although the controller copied an older one back.
    const [origin] = originsOf(await stage.get("deployments/undo"));
    expect(origin).toMatchObject({
      policy: "ClusterPodSchedulingPolicy/inject",
      set: ["/spec/template/spec/nodeSelector/pool"],
    });
    expect(undone.after.sets).toContain(first);
  });

  test("reapply applies current policies, removes stale injections, and is needed only once", async () => {
    await stage.policies({
      inject: {
        podSelector: { matchLabels: { app: "undo" } },
        nodeSelector: { disk: "ssd" },
        onUpdate: "Restore",
      },
    });
    const asked = await doing("undo", ["annotate", "deployment/undo", "usher.dev/reapply=now"]);
    expect(at(asked.after.template, "spec", "nodeSelector")).toEqual({ disk: "ssd" });
    expect(at(asked.after.template, "spec", "affinity")).toBeUndefined();
    expect(at(asked.after.template, "spec", "tolerations")).toBeUndefined();
    const found = await stage.get("deployments/undo");
    expect(at(found, "metadata", "annotations", "usher.dev/reapply")).toBeUndefined();

    await stage.dropPolicy("inject");
    const kept = await doing("undo", ["annotate", "deployment/undo", "touched=yes"]);
    expect(kept.after.template).toEqual(kept.before.template);
    const gone = await doing("undo", ["annotate", "deployment/undo", "usher.dev/reapply=now"]);
    expect(at(gone.after.template, "spec", "nodeSelector")).toBeUndefined();
    expect(originsOf(await stage.get("deployments/undo"))).toEqual([]);
  });

  test("the annotation is on the ReplicaSets as well, and no controller reverts it", async () => {
    const [set] = await stage.items("replicasets?labelSelector=workload%3Doutspoken");
    expect(originsOf(set ?? null)).not.toEqual([]);
    const versions = async () =>
      [...(await stage.items("replicasets")), ...(await stage.items("deployments"))]
        .map((one) => `${nameIn(one)} ${stringAt(one, "metadata", "resourceVersion")}`)
        .filter((one) => !one.startsWith("unchanged"));
    const before = await eventually("all rolled out", async () => {
      const all = await stage.items("deployments");
      const done = all.filter((one) => at(one, "status", "updatedReplicas") === at(one, "spec", "replicas"));
      const whole = all.filter((one) => at(one, "status", "replicas") === at(one, "spec", "replicas"));
      return done.length === all.length && whole.length === all.length && versions();
    });
    await stage.kubectl(APPLY, deployment("unchanged", "none"));
    await eventually("the controller's turn", async () => {
      return at(await stage.get("deployments/unchanged"), "status", "availableReplicas") === 1;
    });
    expect(await versions()).toEqual(before);
    // Each was created by its controller, for a reason that a test above gave.
    const made = stage.audited("create", "replicasets");
    expect(new Set(made)).toEqual(new Set(["system:serviceaccount:kube-system:deployment-controller"]));
    expect(made).toHaveLength((await stage.items("replicasets")).length);
  });
});
