// A cluster with every module enabled, all hooks fail-closed, and the state of usher that the tests inspect.
import { at, type Json, type JsonObject, listAt, stringAt } from "../../src/core/json.ts";
import { grantedNamespaces } from "../cluster/access/granted.ts";
import { eventually } from "../cluster/access/wait.ts";
import type { Cluster } from "../cluster/cluster.ts";
import { REPLICAS } from "../e2e/fixtures/install.ts";
import { GuardStage } from "../e2e/guarding/stage.ts";
import { ALICE, failuresNow } from "./load.ts";

const HOOKS = "/apis/admissionregistration.k8s.io/v1";
export const CONFIGURATIONS = ["mutating", "validating"].map(
  (phase) => `${HOOKS}/${phase}webhookconfigurations/usher`,
);
const DEPLOYMENT = "/apis/apps/v1/namespaces/usher-system/deployments/usher";
const LEASE = "/apis/coordination.k8s.io/v1/namespaces/usher-system/leases/usher";
const REPLICA_COUNT = 2;
const SLOW_MS = 180_000;

/** Usher's Pod Security instead of the API server's own. */
export const FLAGS = { "kube-apiserver": ["--disable-admission-plugins=PodSecurity"] };

export const CONFIGURATION: JsonObject = {
  featureGates: { OpenShiftNodeSchedulingPolicy: true },
  modules: { "pod-os": { podSecurity: { mode: "Replace" } } },
};

export function placement(name: string, labels: JsonObject, pool: string): JsonObject {
  return {
    apiVersion: "kupid.gardener.cloud/v1alpha1",
    kind: "ClusterPodSchedulingPolicy",
    metadata: { name },
    spec: {
      failurePolicy: "Fail",
      namespaceSelector: {},
      podSelector: { matchLabels: labels },
      nodeSelector: { pool },
    },
  };
}

const POLICIES: readonly JsonObject[] = [
  placement("etcd", { role: "etcd" }, "etcd"),
  {
    apiVersion: "operator.project.openshift.io/v1",
    kind: "ProjectRequestLimit",
    metadata: { name: "cluster" },
    spec: { limits: [{ users: [ALICE.user], maxProjects: 3 }], namespaces: {} },
  },
  {
    apiVersion: "scheduling.openshift.io/v1alpha1",
    kind: "NodeSchedulingPolicy",
    metadata: { name: "cluster" },
    spec: { groups: [{ name: "ControlPlane", mode: "Enable" }] },
  },
];

export class Installation {
  readonly #cluster: () => Cluster;

  constructor(cluster: () => Cluster) {
    this.#cluster = cluster;
  }

  /** Nodes, users and namespaces; no objects of usher. */
  async prepare(): Promise<void> {
    const stage = new GuardStage(this.#cluster);
    await stage.prepare();
    await stage.namespaces("team-a", "locked");
    await this.#cluster().call("PATCH", "/api/v1/namespaces/locked", {
      metadata: { labels: { "pod-security.kubernetes.io/enforce": "restricted" } },
    });
    await this.#cluster().apply(...grantedNamespaces(ALICE.user, "create"));
  }

  /** Creates an object for every module, once their kinds are served; returns when all of them are in force in every replica. */
  async applyPolicies(): Promise<void> {
    await this.#cluster().apply(...POLICIES);
    await this.inForce();
  }

  /** Each replica has to be asked: several responses in a row must all be right. */
  async inForce(): Promise<void> {
    await eventually(
      "every hook of every replica",
      async () => {
        for (let round = 0; round < 8; round++) {
          const failed = await failuresNow(this.#cluster());
          if (failed.length > 0) throw new Error(failed.join("\n"));
        }
        return (await this.replicas()).length === REPLICA_COUNT;
      },
      SLOW_MS,
    );
  }

  replicas(): Promise<readonly Json[]> {
    return this.#cluster()
      .call("GET", REPLICAS)
      .then((pods) => listAt(pods, "items"));
  }

  /** Leading pods come first. */
  async leaderFirst(): Promise<readonly Json[]> {
    const holder = stringAt(await this.#cluster().call("GET", LEASE), "spec", "holderIdentity") ?? "";
    const leads = (pod: Json) => holder.includes(stringAt(pod, "metadata", "name") ?? "?");
    const pods = await this.replicas();
    return [...pods.filter(leads), ...pods.filter((pod) => !leads(pod))];
  }

  restarts(pods: readonly Json[]): number {
    const of = (pod: Json) => Number(at(pod, "status", "containerStatuses", 0, "restartCount") ?? 0);
    return pods.reduce<number>((sum, pod) => sum + of(pod), 0);
  }

  /** All replicas run the last template and are ready. */
  async rolledOut(): Promise<void> {
    await eventually(
      "all replicas replaced",
      async () => {
        const live = await this.#cluster().call("GET", DEPLOYMENT);
        const count = (field: string) => Number(at(live, "status", field) ?? 0);
        return (
          at(live, "status", "observedGeneration") === at(live, "metadata", "generation") &&
          ["updatedReplicas", "readyReplicas", "replicas"].every((field) => count(field) === REPLICA_COUNT)
        );
      },
      SLOW_MS,
    );
  }

  /** The names of the webhooks that refuse requests while usher is down. */
  async closed(): Promise<readonly string[]> {
    const found = await Promise.all(CONFIGURATIONS.map((path) => this.#cluster().call("GET", path)));
    return found.flatMap((configuration) =>
      listAt(configuration, "webhooks").flatMap((entry) =>
        at(entry, "failurePolicy") === "Fail" ? [stringAt(entry, "name") ?? ""] : [],
      ),
    );
  }

  async isRegistered(): Promise<boolean> {
    const found = await Promise.all(CONFIGURATIONS.map((path) => this.#cluster().request("GET", path)));
    return found.some(({ status }) => status === 200);
  }

  /** Waits until a new policy is in force in every replica, which shows that all watch and one leads. */
  async follows(name: string): Promise<void> {
    const labels = { role: name };
    await this.#cluster().apply(placement(name, labels, name));
    await eventually(
      `the policy ${name} in force`,
      async () => {
        for (let round = 0; round < 8; round++) {
          const pod = await this.#cluster().call("POST", "/api/v1/namespaces/team-a/pods?dryRun=All", {
            metadata: { generateName: "p-", labels },
            spec: { containers: [{ name: "c", image: "app:1" }] },
          });
          if (stringAt(pod, "spec", "nodeSelector", "pool") !== name) return false;
        }
        const path = "/apis/kupid.gardener.cloud/v1alpha1/clusterpodschedulingpolicies";
        const conditions = listAt(
          await this.#cluster().call("GET", `${path}/${name}`),
          "status",
          "conditions",
        );
        return conditions.some((one) => at(one, "type") === "Valid" && at(one, "status") === "True");
      },
      SLOW_MS,
    );
  }
}
