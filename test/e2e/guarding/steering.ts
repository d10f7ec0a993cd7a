// Effects that refusing only at the bind would have (starvation, eviction, stalled rollouts), with steering: started
// first, checked later.
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { at, type JsonObject, stringAt } from "../../../src/core/json.ts";
import { eventually } from "../../cluster/access/wait.ts";
import type { Cluster } from "../../cluster/cluster.ts";
import { LONG } from "../../cluster/describe.ts";
import { endEvictions, type Tried, tryEvictions } from "./evictions.ts";
import { ROLE } from "./rows.ts";
import { apps, EVERYTHING, type GuardStage, SPEC, workload } from "./stage.ts";

/** The longer one is as long as the measurement that found 92 evictions without steering. */
const WINDOW_MS = LONG ? 90_000 : 30_000;

const prefersControlPlane: JsonObject = {
  affinity: {
    nodeAffinity: {
      preferredDuringSchedulingIgnoredDuringExecution: [
        { weight: 100, preference: { matchExpressions: [{ key: ROLE, operator: "Exists" }] } },
      ],
    },
  },
};
const cpu = (amount: string): JsonObject => ({
  containers: [{ name: "c", image: "app:1", resources: { requests: { cpu: amount } } }],
});

/** Starts the workloads that must stay quiet, and returns the tests to run in between and at the end. */
export function steeringTests(
  stage: GuardStage,
  cluster: () => Cluster,
): { readonly between: () => void; readonly end: () => void } {
  let began = 0;
  let victims: readonly string[] = [];
  let tried: readonly Tried[] = [];
  const uids = async () =>
    (await stage.pods("kube-system", "app=victim"))
      .map((pod) => stringAt(pod, "metadata", "uid") ?? "")
      .sort();
  const daemonSet = () => cluster().call("GET", `${apps("m5", "daemonsets")}/agent`);

  test("starts the workloads that steering must keep quiet", async () => {
    await cluster().call("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", {
      metadata: { name: "high" },
      value: 1_000_000,
    });
    // M3: the control-plane nodes are full of an authorised Deployment without priority, the workers of pods as
    // important as the next.
    const onControlPlane = { nodeSelector: { [ROLE]: "" }, ...EVERYTHING, ...cpu("60") };
    await cluster().call(
      "POST",
      apps("kube-system", "deployments"),
      workload("victim", onControlPlane, { replicas: 2 }),
    );
    const important = { ...EVERYTHING, ...cpu("60"), priorityClassName: "high" };
    await cluster().call("POST", apps("m3", "deployments"), workload("full", important, { replicas: 2 }));
    victims = await eventually("full nodes", async () => {
      const all = [...(await stage.pods("kube-system", "app=victim")), ...(await stage.pods("m3"))];
      return all.length === 4 && all.every((pod) => at(pod, "spec", "nodeName") !== undefined) && uids();
    });
    began = Date.now();
    await cluster().call("POST", apps("m3", "deployments"), workload("attacker", important));
    tried = await tryEvictions(stage, cluster, { ...cpu("60"), priorityClassName: "high" });
    // M2: neutral pods, and pods that prefer the control plane.
    await cluster().call("POST", apps("m2", "deployments"), workload("neutral", EVERYTHING, { replicas: 6 }));
    const preferring = { ...EVERYTHING, ...prefersControlPlane };
    await cluster().call(
      "POST",
      apps("m2", "deployments"),
      workload("preferring", preferring, { replicas: 2 }),
    );
    // M5: a DaemonSet that tolerates everything.
    await cluster().call("POST", apps("m5", "daemonsets"), workload("agent", EVERYTHING));
  }, 120_000);

  const between = () => {
    test("M5: the rollout of a DaemonSet on the workers completes", async () => {
      const wait = (image: string) =>
        eventually(`a rollout of ${image}`, async () => {
          const object = await daemonSet();
          const { desiredNumberScheduled, updatedNumberScheduled, numberAvailable } = (at(object, "status") ??
            {}) as JsonObject;
          return desiredNumberScheduled === 2 && updatedNumberScheduled === 2 && numberAvailable === 2;
        });
      await wait("app:1");
      const template = { spec: { containers: [{ name: "c", image: "app:2" }] } };
      await cluster().call("PATCH", `${apps("m5", "daemonsets")}/agent`, { spec: { template } });
      await eventually(
        "the new generation to be observed",
        async () =>
          at(await daemonSet(), "status", "observedGeneration") ===
          at(await daemonSet(), "metadata", "generation"),
      );
      await wait("app:2");
      const pods = await stage.pods("m5");
      expect(pods.map((pod) => stringAt(pod, "spec", "nodeName")).sort()).toEqual(["w-0", "w-1"]);
    });

    test("placement and steering on one DaemonSet: ten applies give one generation", async () => {
      await cluster().apply({
        apiVersion: "kupid.gardener.cloud/v1alpha1",
        kind: "ClusterPodSchedulingPolicy",
        metadata: { name: "both" },
        spec: {
          namespaceSelector: {},
          podSelector: { matchLabels: { app: "both" } },
          nodeSelector: { "kubernetes.io/os": "linux" },
        },
      });
      await eventually("the policy to be known", async () => {
        const tried = await stage.pod(SPEC, {
          metadata: { name: "probe", labels: { app: "both" } },
          query: "?dryRun=All",
        });
        return at(tried.body, "spec", "nodeSelector", "kubernetes.io/os") === "linux";
      });
      const input = JSON.stringify({
        apiVersion: "apps/v1",
        kind: "DaemonSet",
        ...workload("both", EVERYTHING),
      });
      for (let i = 0; i < 10; i++) {
        const applied = await cluster().kubectl(["-n", "team-a", "apply", "--server-side", "-f", "-"], {
          input,
        });
        expect(applied, applied.stderr).toMatchObject({ code: 0 });
      }
      const stored = await cluster().call("GET", `${apps("team-a", "daemonsets")}/both`);
      expect(at(stored, "metadata", "generation")).toBe(1);
      expect(at(stored, "spec", "template", "spec", "nodeSelector")).toEqual({ "kubernetes.io/os": "linux" });
      expect(JSON.stringify(at(stored, "spec", "template", "spec", "affinity"))).toContain(ROLE);
    });
  };

  const end = () => {
    test(
      `row 71, M2, M3: in ${WINDOW_MS / 1_000} s no bind was refused and no pod was evicted, in any of the tried ways`,
      async () => {
        await sleep(Math.max(0, began + WINDOW_MS - Date.now()));
        const deleted = cluster()
          .auditLog()
          .filter(({ verb, objectRef }) => verb === "delete" && objectRef?.name?.startsWith("victim-"))
          .map(({ user, objectRef, requestReceivedTimestamp }) => [
            user.username,
            objectRef?.name,
            requestReceivedTimestamp,
            new Date(began).toISOString(),
          ]);
        expect(await uids(), JSON.stringify(deleted)).toEqual(victims);
        const refused = cluster()
          .auditLog()
          .filter(
            ({ objectRef, responseStatus }) =>
              objectRef?.subresource === "binding" && (responseStatus?.code ?? 0) >= 400,
          )
          .filter(({ objectRef }) => ["m2", "m3", "m5"].includes(objectRef?.namespace ?? ""));
        expect(refused).toEqual([]);
        const neutral = await stage.pods("m2");
        expect(neutral.map((pod) => stringAt(pod, "spec", "nodeName")?.slice(0, 2))).toEqual(
          Array(8).fill("w-"),
        );
        const [attacker] = await stage.pods("m3", "app=attacker");
        expect(stringAt(attacker, "spec", "nodeName")).toBeUndefined();
        expect(tried.filter(({ status, expected }) => status !== expected)).toEqual([]);
        // The workloads did create pods, which are pending.
        const made = (await stage.pods("m3")).filter((pod) =>
          stringAt(pod, "metadata", "name")?.startsWith("all-"),
        );
        expect(new Set(made.map((pod) => stringAt(pod, "metadata", "ownerReferences", 0, "kind")))).toEqual(
          new Set(["DaemonSet", "ReplicaSet", "StatefulSet", "ReplicationController", "Job"]),
        );
        expect(made.filter((pod) => at(pod, "spec", "nodeName") !== undefined)).toEqual([]);
        await endEvictions(cluster);
      },
      WINDOW_MS + 30_000,
    );
  };
  return { between, end };
}
