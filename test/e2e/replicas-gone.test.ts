// The drill behind "it can't lock a cluster": every module in its strictest mode, then no replica of usher, and no
// watchdog either.

import { expect, test } from "vitest";
import { at, type JsonObject, listAt, stringAt } from "../../src/core/json.ts";
import { controlPlanePolicy } from "../builders/guard.ts";
import type { Reply } from "../cluster/access/client.ts";
import { grantedNamespaces } from "../cluster/access/granted.ts";
import { type Identity, nodeIdentity } from "../cluster/access/identity.ts";
import { eventually } from "../cluster/access/wait.ts";
import { describeOwnCluster } from "../cluster/describe.ts";
import { configured, install } from "./fixtures/install.ts";
import { CONFIGURATIONS } from "./fixtures/placed-pods.ts";
import { apps, EVERYTHING, GuardStage, MALLORY, SCHEDULER, SPEC, SRE, workload } from "./guarding/stage.ts";

const OPTIONS = { flags: { "kube-apiserver": ["--disable-admission-plugins=PodSecurity"] } } as const;
const NAMESPACES = "/api/v1/namespaces";
const WATCHDOG = "/apis/apps/v1/namespaces/usher-system/deployments/usher-watchdog";
const LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
const ALICE: Identity = { user: "alice" };
const NODES = ["cp-0", "cp-1", "w-0", "w-1", "w-new"];

const SETTINGS: JsonObject = {
  featureGates: { OpenShiftNodeSchedulingPolicy: true },
  watchdog: { openAfterSeconds: 5 },
  modules: {
    "pod-os": {
      podSecurity: { mode: "Replace", templates: "Deny", windowsChecks: true },
      os: {
        contradictions: "Deny",
        write: true,
        nodeMismatch: "Deny",
        harden: ["team-a"],
        repairNodeLabels: true,
      },
    },
  },
};

const OBJECTS: readonly JsonObject[] = [
  {
    apiVersion: "kupid.gardener.cloud/v1alpha1",
    kind: "ClusterPodSchedulingPolicy",
    metadata: { name: "strict" },
    spec: {
      namespaceSelector: {},
      podSelector: {},
      nodeSelector: { pool: "work" },
      enforcement: "Refuse",
      onConflict: "Refuse",
      failurePolicy: "Fail",
    },
  },
  {
    apiVersion: "node-labels.openshift.io/v1beta1",
    kind: "Labels",
    metadata: { name: "pools", namespace: "default" },
    spec: { nodeNamePatterns: ["w-.*"], labels: { pool: "work" } },
  },
  {
    apiVersion: "operator.project.openshift.io/v1",
    kind: "ProjectRequestLimit",
    metadata: { name: "cluster" },
    spec: { limits: [{ maxProjects: 0 }], namespaces: {} },
  },
  controlPlanePolicy({
    emergencyUsers: [SRE.user],
    guardAccessOnProtectedNodes: true,
    checkRequesterOnSelection: true,
  }),
  ...grantedNamespaces(ALICE.user, "create"),
];

describeOwnCluster("every module in its strictest mode, without a replica", OPTIONS, (cluster) => {
  const stage = new GuardStage(cluster);
  const answer = ({ status, body }: Reply) =>
    `${status} ${/failed calling webhook "[^"]+"|USHER-[A-Z]\d+/.exec(stringAt(body, "message") ?? "")?.[0] ?? ""}`;
  const closed = async () =>
    (await Promise.all(CONFIGURATIONS.map((path) => cluster().call("GET", path))))
      .flatMap((configuration) => listAt(configuration, "webhooks"))
      .flatMap((hook) => (at(hook, "failurePolicy") === "Fail" ? [stringAt(hook, "name") ?? ""] : []));
  const project = (name: string) =>
    cluster().request("POST", `${NAMESPACES}?dryRun=All`, { metadata: { name } }, ALICE);
  const runs = (namespace: string, name: string) =>
    eventually(
      `pod ${name} to run`,
      async () => {
        const pod = await cluster().call("GET", `${NAMESPACES}/${namespace}/pods/${name}`);
        return stringAt(pod, "status", "phase") === "Running" && stringAt(pod, "spec", "nodeName");
      },
      60_000,
    );
  const staysGuarded = async () => {
    expect(answer(await stage.pod({ ...SPEC, nodeName: "cp-0" }))).toMatch(/^(403 USHER-G01|500 )/);
    expect(answer(await stage.bind(waiting[0] ?? "", MALLORY))).toBe("403 USHER-G02");
    const free = { metadata: { labels: { "node-role.kubernetes.io/control-plane": null } } };
    expect(answer(await cluster().request("PATCH", "/api/v1/nodes/cp-0", free, MALLORY))).toBe(
      "403 USHER-G09",
    );
  };
  /** Created while usher evaluated pods, and not bound yet. */
  let waiting: string[] = [];

  test("each module refuses as its mode demands, and fails closed", async () => {
    await stage.prepare();
    await stage.namespaces("team-a");
    await cluster().call("PATCH", `${NAMESPACES}/team-a`, {
      metadata: { labels: { "pod-security.kubernetes.io/enforce": "baseline" } },
    });
    await install(cluster(), "--replicas", "1", ...configured(SETTINGS));
    await cluster().apply(...OBJECTS);
    await eventually(
      "the guard",
      async () => answer(await stage.pod({ ...SPEC, nodeName: "cp-0" })) === "403 USHER-G01",
    );
    for (const module of ["placement-closed", "placement-enforcement", "pod-security", "project-limit"])
      await eventually(`fail-closed webhooks of ${module}`, async () =>
        (await closed()).some((name) => name.startsWith(module)),
      );
    const elsewhere = { ...SPEC, nodeSelector: { pool: "other" } };
    expect(answer(await stage.pod(elsewhere))).toMatch(/^403 USHER-P/);
    const privileged = { ...SPEC, hostPID: true };
    expect(await stage.pod(privileged)).toMatchObject({
      status: 403,
      body: { message: expect.stringContaining('violates PodSecurity "baseline:latest"') },
    });
    expect(answer(await project("alice-1"))).toBe("403 USHER-Q01");
    await eventually("the rule's label", async () => {
      const node = await cluster().call("GET", "/api/v1/nodes/w-1");
      return stringAt(node, "metadata", "labels", "pool") === "work";
    });
    waiting = await Promise.all([stage.waiting(), stage.waiting()]);
  }, 120_000);

  test("without a replica and without a watchdog nodes join, and kube-system's pods start on all nodes", async () => {
    await cluster().call("PATCH", WATCHDOG, { spec: { replicas: 0 } });
    const dogs = "app.kubernetes.io/component=watchdog";
    await eventually("no watchdog", async () => (await stage.pods("usher-system", dogs)).length === 0);
    await stage.scaleUsher(0);
    await cluster().createNode("w-new");
    const kubelet = nodeIdentity("w-new");
    await eventually("its lease", async () => {
      const renewed = { spec: { renewTime: "2026-01-01T00:00:00.000000Z" } };
      return (await cluster().request("PATCH", `${LEASES}/w-new`, renewed, kubelet)).status === 200;
    });
    const heartbeat = { metadata: { annotations: { heartbeat: "1" } } };
    const beaten = await cluster().request("PATCH", "/api/v1/nodes/w-new/status", heartbeat, kubelet);
    expect(answer(beaten)).toBe("200 ");
    await cluster().call("POST", apps("kube-system", "daemonsets"), workload("proxy", EVERYTHING));
    await cluster().call("POST", apps("kube-system", "deployments"), workload("dns", {}, { replicas: 2 }));
    await eventually(
      "the pods of kube-system",
      async () => {
        const running = async (app: string) =>
          (await stage.pods("kube-system", `app=${app}`))
            .filter((pod) => stringAt(pod, "status", "phase") === "Running")
            .map((pod) => stringAt(pod, "spec", "nodeName") ?? "");
        return (await running("proxy")).sort().join() === NODES.join() && (await running("dns")).length === 2;
      },
      60_000,
    );
  }, 180_000);

  test("existing pods are bound to unguarded nodes and run, and guarded nodes stay guarded", async () => {
    const [guarded = "", free = ""] = waiting;
    await staysGuarded();
    expect(answer(await stage.bind(free, SCHEDULER, { target: { kind: "Node", name: "w-new" } }))).toBe(
      "201 ",
    );
    expect(await runs("team-a", free)).toBe("w-new");
    expect(await stage.nodeOf("team-a", guarded)).toBeUndefined();
    // The modules that refuse by a policy or a setting block new pods and namespaces of tenants.
    expect(answer(await stage.pod(SPEC))).toMatch(/^500 failed calling webhook/);
    expect(answer(await project("alice-1"))).toMatch(/^500 failed calling webhook/);
  }, 120_000);

  test("the watchdog opens placement and Pod Security: new pods run, and the guard and the limit stay closed", async () => {
    await cluster().call("PATCH", WATCHDOG, { spec: { replicas: 1 } });
    const name = stage.name();
    await eventually(
      "a new pod",
      async () => (await stage.pod(SPEC, { metadata: { name } })).status === 201,
      60_000,
    );
    expect(await runs("team-a", name)).toMatch(/^w-/);
    for (const entry of await closed()) expect(entry).toMatch(/^(node-guard|project-limit)/);
    await staysGuarded();
    expect(answer(await project("alice-1"))).toMatch(/^500 failed calling webhook "project-limit/);
  }, 120_000);

  test("usher comes back by itself, closes the webhooks again, and labels the node that joined", async () => {
    await stage.scaleUsher(1);
    await eventually(
      "the refusals",
      async () => {
        const other = await stage.pod({ ...SPEC, nodeSelector: { pool: "other" } }, { query: "?dryRun=All" });
        return /^403 USHER-P/.test(answer(other)) && answer(await project("alice-1")) === "403 USHER-Q01";
      },
      60_000,
    );
    await eventually("the rule's label", async () => {
      const node = await cluster().call("GET", "/api/v1/nodes/w-new");
      return stringAt(node, "metadata", "labels", "pool") === "work";
    });
    await staysGuarded();
  }, 120_000);
});
