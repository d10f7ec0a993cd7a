// Beside the API server's own plugin PodSecurity: usher adds what the plugin does not evaluate, and repeats nothing.
import { afterAll, beforeAll, expect, test } from "vitest";
import { type JsonObject, stringAt } from "../../src/core/json.ts";
import { eventually } from "../cluster/access/wait.ts";
import { describeOwnCluster } from "../cluster/describe.ts";
import { warningsOf } from "./fixtures/placement-stage.ts";
import { type PodOSUsher, podOSUsher } from "./fixtures/pod-os-usher.ts";

const OPTIONS = {
  without: ["kube-controller-manager", "kube-scheduler", "kwok"],
  flags: { "kube-apiserver": ["--disable-admission-plugins=ServiceAccount"] },
} as const;

const HOST = { containers: [{ name: "c", image: "any" }], hostPID: true };
const DETAIL = 'PodSecurity "baseline:latest": host namespaces (hostPID=true)';
const PODS = "/api/v1/namespaces/shop/pods?dryRun=All";
const DEPLOYMENTS = "/apis/apps/v1/namespaces/shop/deployments?dryRun=All";
const ROLLOUTS = "/apis/argoproj.io/v1alpha1/namespaces/shop/rollouts";

const CRD: JsonObject = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: "rollouts.argoproj.io" },
  spec: {
    group: "argoproj.io",
    scope: "Namespaced",
    names: { kind: "Rollout", plural: "rollouts", singular: "rollout", listKind: "RolloutList" },
    versions: [
      {
        name: "v1alpha1",
        served: true,
        storage: true,
        schema: { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } },
      },
    ],
  },
};

describeOwnCluster("an API server with the plugin PodSecurity", OPTIONS, (cluster) => {
  let usher: PodOSUsher;
  const workload = (name: string, spec: JsonObject): JsonObject => ({
    metadata: { name },
    spec: {
      selector: { matchLabels: { app: name } },
      template: { metadata: { labels: { app: name } }, spec },
    },
  });
  const deploy = () => cluster().request("POST", DEPLOYMENTS, workload("d", HOST));
  const roll = (spec: JsonObject) =>
    cluster().request("POST", `${ROLLOUTS}?dryRun=All`, {
      apiVersion: "argoproj.io/v1alpha1",
      kind: "Rollout",
      ...workload("r", spec),
    });
  const timesIn = (text: string, part: string) => text.split(part).length - 1;

  beforeAll(async () => {
    const labels = Object.fromEntries(
      ["enforce", "warn"].map((mode) => [`pod-security.kubernetes.io/${mode}`, "baseline"]),
    );
    await cluster().call("POST", "/api/v1/namespaces", { metadata: { name: "shop", labels } });
    await cluster().apply(CRD);
    await eventually(
      "rollouts served",
      async () => (await cluster().request("GET", ROLLOUTS)).status === 200,
    );
    usher = await podOSUsher(cluster(), {});
    await eventually("the webhook", async () => warningsOf(await roll(HOST)) !== "");
  });
  afterAll(() => usher?.stop());

  test("configured kinds are warned about, with the plugin's text and about their OS", async () => {
    const made = await roll(HOST);
    expect([made.status, timesIn(warningsOf(made), `would violate ${DETAIL}`)]).toEqual([201, 1]);
    const windows = await roll({ ...HOST, os: { name: "windows" } });
    expect(warningsOf(windows)).toContain(
      "spec.template.spec.hostPID: Forbidden: cannot be set for a windows pod",
    );
  });

  test("the plugin's messages for pods and built-in kinds are not repeated", async () => {
    const refused = await cluster().request("POST", PODS, { metadata: { name: "p" }, spec: HOST });
    expect(stringAt(refused.body, "message")).toBe(`pods "p" is forbidden: violates ${DETAIL}`);
    const made = await deploy();
    expect([made.status, timesIn(warningsOf(made), "PodSecurity")]).toEqual([201, 1]);
  });

  test("templates: Deny refuses built-in and configured kinds, and never a pod", async () => {
    await usher.stop();
    usher = await podOSUsher(cluster(), { podSecurity: { templates: "Deny" } });
    const refused = await eventually("the webhook", async () => {
      const reply = await deploy();
      return reply.status === 403 ? reply : undefined;
    });
    expect(stringAt(refused.body, "message")).toContain(
      `deployments.apps "d" is forbidden: violates ${DETAIL}`,
    );
    // The plugin warns before it knows of the refusal.
    expect(timesIn(warningsOf(refused), "PodSecurity")).toBe(1);
    const rolled = await roll(HOST);
    expect([rolled.status, warningsOf(rolled)]).toEqual([403, ""]);
    const pod = await cluster().request("POST", PODS, { metadata: { name: "p" }, spec: HOST });
    expect(stringAt(pod.body, "message")).not.toContain("webhook");
  });
});
