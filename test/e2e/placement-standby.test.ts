// Placement while no replica of usher answers: compiled policies stand in for the webhooks.
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { at, type JsonObject, listAt, stringAt } from "../../src/core/json.ts";
import { nameOf } from "../../src/core/kubernetes/object.ts";
import { provenanceOf } from "../../src/core/provenance/annotation.ts";
import { eventually } from "../cluster/access/wait.ts";
import { describeOwnCluster } from "../cluster/describe.ts";
import { configured, install } from "./fixtures/install.ts";

const ADMISSION = "/apis/admissionregistration.k8s.io/v1";
const MUTATING = `${ADMISSION}/mutatingwebhookconfigurations/usher`;
const DEPLOYMENT = "/apis/apps/v1/namespaces/usher-system/deployments/usher";
const NAMES = ["usher-standby-default.own", "usher-standby.pool"];
const SETTINGS: JsonObject = {
  watchdog: { fallbackAfterSeconds: 5 },
  modules: { placement: { fallback: "Compiled" } },
};
const TERM = { matchExpressions: [{ key: "zone", operator: "In", values: ["a"] }] };
const TOLERATION = { key: "dedicated", operator: "Equal", value: "batch", effect: "NoSchedule" };
const required = (...nodeSelectorTerms: JsonObject[]) => ({
  nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } },
});
const API = { apiVersion: "kupid.gardener.cloud/v1alpha1" };
const POLICIES: readonly JsonObject[] = [
  {
    ...API,
    kind: "ClusterPodSchedulingPolicy",
    metadata: { name: "pool" },
    spec: {
      namespaceSelector: {},
      podSelector: { matchLabels: { app: "batch" } },
      affinity: required(TERM),
      tolerations: [TOLERATION],
    },
  },
  {
    ...API,
    kind: "PodSchedulingPolicy",
    metadata: { name: "own", namespace: "default" },
    spec: { podSelector: { matchLabels: { app: "batch" } }, nodeSelector: { disk: "ssd" } },
  },
];

describeOwnCluster("placement with fallback: Compiled", {}, (cluster) => {
  let made = 0;
  const create = async (query = ""): Promise<JsonObject> =>
    (await cluster().call("POST", `/api/v1/namespaces/default/pods${query}`, {
      metadata: { name: `p-${made++}`, labels: { app: "batch" } },
      spec: { containers: [{ name: "c", image: "app:1" }] },
    })) as JsonObject;
  const label = async () =>
    stringAt(await cluster().call("GET", MUTATING), "metadata", "labels", "usher.dev/standby");
  const scale = (replicas: number) => cluster().call("PATCH", DEPLOYMENT, { spec: { replicas } });
  const items = async (resource: string) =>
    listAt(await cluster().call("GET", `${ADMISSION}/${resource}`), "items") as JsonObject[];
  /** Placed, and by whom; each injection exactly once. */
  const placedBy = (pod: JsonObject): "webhook" | "policies" | "nobody" => {
    const terms = listAt(
      pod,
      ...["spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"],
      "nodeSelectorTerms",
    );
    const tolerations = listAt(pod, "spec", "tolerations").filter((one) => at(one, "key") === "dedicated");
    if (terms.length === 0 && tolerations.length === 0) return "nobody";
    expect([terms, tolerations, at(pod, "spec", "nodeSelector")]).toEqual([
      [TERM],
      [TOLERATION],
      { disk: "ssd" },
    ]);
    return provenanceOf(pod).length > 0 ? "webhook" : "policies";
  };

  test("keeps compiled policies whose bindings match nothing while a replica is ready", async () => {
    await cluster().createNode("w0");
    await install(cluster(), "--replicas", "1", ...configured(SETTINGS));
    await cluster().apply(...POLICIES);
    for (const resource of ["mutatingadmissionpolicies", "mutatingadmissionpolicybindings"])
      await eventually(
        resource,
        async () => (await items(resource)).map(nameOf).sort().join() === NAMES.join(),
      );
    await eventually("the label", async () => (await label()) === "ready");
    await eventually("the webhook", async () => placedBy(await create("?dryRun=All")) === "webhook");
    // They are stored as they are desired: the leader does not write them again and again.
    const versions = async () =>
      (await items("mutatingadmissionpolicies")).map((one) => stringAt(one, "metadata", "resourceVersion"));
    const before = await versions();
    await sleep(7_000);
    expect(await versions()).toEqual(before);
    // A condition of another manager could keep them from placing anything.
    const path = `${ADMISSION}/mutatingadmissionpolicies/${NAMES[1]}`;
    const conditions = listAt(await cluster().call("GET", path), "spec", "matchConditions");
    const never = { name: "never", expression: "false" };
    await cluster().call("PATCH", path, { spec: { matchConditions: [...conditions, never] } });
    await eventually(
      "the repair",
      async () =>
        listAt(await cluster().call("GET", path), "spec", "matchConditions").length === conditions.length,
    );
  });

  test("places pods that are created while no replica is ready, from the time of fallbackAfterSeconds on", async () => {
    await scale(0);
    const since = Date.now();
    await eventually("a placed pod", async () => placedBy(await create("?dryRun=All")) === "policies");
    // Five seconds, the watchdog's poll, and the time until the last replica has ended.
    expect(Date.now() - since).toBeLessThan(45_000);
    expect(await label()).toBe("active");
    for (let i = 0; i < 20; i++) expect(placedBy(await create())).toBe("policies");
    await eventually("the event", async () => {
      const events = await cluster().call("GET", "/apis/events.k8s.io/v1/namespaces/usher-system/events");
      return listAt(events, "items").some((one) => at(one, "reason") === "StandbyBegan");
    });
  });

  test("ends before the webhooks are asked again, and injects nothing twice", async () => {
    await scale(1);
    const seen: string[] = [];
    const labels = new Set<string | undefined>();
    await eventually(
      "the webhook",
      async () => {
        const by = placedBy(await create("?dryRun=All"));
        if (seen.at(-1) !== by) seen.push(by);
        if (by === "webhook") labels.add(await label());
        return by === "webhook" && seen.length > 0;
      },
      120_000,
    );
    // Between both, while the replica becomes ready, a pod may be placed by neither.
    expect(seen.filter((one) => one !== "nobody")).toEqual(["policies", "webhook"]);
    expect([...labels]).toEqual(["ready"]);
    for (let i = 0; i < 20; i++) expect(placedBy(await create())).toBe("webhook");
    expect(await label()).toBe("ready");
  }, 150_000);

  test("a pod that both place has each injection once", async () => {
    // As in the moment before the API server has read the label.
    await cluster().call(
      "PATCH",
      DEPLOYMENT.replace("usher-system/deployments/usher", "usher-system/deployments/usher-watchdog"),
      {
        spec: { replicas: 0 },
      },
    );
    const both: string[] = [];
    await eventually("both", async () => {
      await cluster().call("PATCH", MUTATING, { metadata: { labels: { "usher.dev/standby": "active" } } });
      for (let i = 0; i < 10; i++) both.push(placedBy(await create("?dryRun=All")));
      return both.includes("policies");
    });
    await eventually("the leader's repair", async () => (await label()) === "ready");
  });

  test("removes the compiled policies with the setting", async () => {
    await install(cluster(), "--replicas", "1", ...configured({}));
    for (const resource of ["mutatingadmissionpolicies", "mutatingadmissionpolicybindings"])
      await eventually(`no ${resource}`, async () => (await items(resource)).length === 0);
  }, 180_000);
});
