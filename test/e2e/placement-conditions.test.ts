// The pod updates for which the API server calls usher, by the hook's own matchConditions: no server answers here, so a
// call shows as a refusal.
import { afterAll, beforeAll, expect, test } from "vitest";
import { DEFAULT_INSTALLATION } from "../../src/core/installation/installation.ts";
import type { JsonObject } from "../../src/core/json.ts";
import { PROVENANCE } from "../../src/core/provenance/annotation.ts";
import { webhookConfigurations } from "../../src/core/registration/webhooks.ts";
import { placement } from "../../src/modules/placement/index.ts";
import { assemblyOf } from "../builders/evaluation.ts";
import { came, clusterPolicy } from "../builders/policy.ts";
import { eventually } from "../cluster/access/wait.ts";
import { describeCluster, testNamespace } from "../cluster/describe.ts";

const NOTE = { [PROVENANCE]: "{}" };
const GATES = [{ name: "example.com/wait" }];
const NEW_IMAGE = [{ op: "replace", path: "/spec/containers/0/image", value: "two" }];
const LABEL = { metadata: { labels: { touched: "yes" } } };
const REAPPLY = { metadata: { annotations: { "usher.dev/reapply": "now" } } };

describeCluster("pod updates for which usher is called", (cluster) => {
  const namespace = testNamespace(cluster);
  const pods = () => `/api/v1/namespaces/${namespace()}/pods`;
  const configuration = () =>
    `/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/conditions-${namespace()}`;

  /** Registers the hook of these policies, fail-closed, for this namespace, and without a server. */
  const register = async (policies: readonly JsonObject[], hook = "placement-pod-updates"): Promise<void> => {
    const hooks = assemblyOf([placement], policies.map(came))
      .declaredHooks.filter(({ name }) => name === hook)
      .map((one) => ({ ...one, failure: "closed" as const, namespaces: { only: [namespace()] } }));
    expect(hooks).toHaveLength(1);
    const endpoint = { url: "https://127.0.0.1:1" };
    const { mutating } = webhookConfigurations(hooks, DEFAULT_INSTALLATION, { endpoint });
    const body = { ...mutating, metadata: { name: `conditions-${namespace()}` } };
    await cluster().request("DELETE", configuration());
    await cluster().call("POST", "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations", body);
  };

  /** Whether usher is called for this patch. */
  const asked = async (name: string, patch: JsonObject | typeof NEW_IMAGE): Promise<boolean> => {
    const { status, body } = await cluster().request("PATCH", `${pods()}/${name}?dryRun=All`, patch);
    const refused = status !== 200;
    if (refused) expect(JSON.stringify(body)).toContain("failed calling webhook");
    return refused;
  };

  beforeAll(async () => {
    const make = (name: string, metadata: JsonObject, spec: JsonObject = {}) =>
      cluster().call("POST", pods(), {
        metadata: { name, ...metadata },
        // No node has this label, so that nothing ever runs.
        spec: { containers: [{ name: "c", image: "one" }], nodeSelector: { nowhere: "yes" }, ...spec },
      });
    await make("plain", {});
    await make("noted", { annotations: NOTE });
    await make("gated", {}, { schedulingGates: GATES });
    await make("going", { annotations: NOTE, finalizers: ["example.com/hold"] }, { schedulingGates: GATES });
    await cluster().call("DELETE", `${pods()}/going`);
  });

  afterAll(async () => {
    await cluster().request("DELETE", configuration());
    await cluster().request("PATCH", `${pods()}/going`, { metadata: { finalizers: null } });
  });

  test("without any policy only for objects with usher's annotations", async () => {
    await register([], "placement");
    const template = {
      metadata: { labels: { app: "a" } },
      spec: { containers: [{ name: "c", image: "one" }] },
    };
    const objects: Record<string, JsonObject> = {
      pods: { spec: template.spec },
      deployments: { spec: { selector: { matchLabels: { app: "a" } }, template } },
    };
    const created = async (resource: string, metadata: JsonObject): Promise<boolean> => {
      const path = resource === "pods" ? pods() : `/apis/apps/v1/namespaces/${namespace()}/${resource}`;
      const body = { ...objects[resource], metadata: { name: "new", ...metadata } };
      const { status } = await cluster().request("POST", `${path}?dryRun=All`, body);
      return status === 201;
    };
    await eventually("the hook to be in force", async () => !(await created("pods", { annotations: NOTE })));
    for (const resource of Object.keys(objects)) {
      expect(await created(resource, {})).toBe(true);
      expect(await created(resource, { annotations: { other: "yes" } })).toBe(true);
      expect(await created(resource, { annotations: NOTE })).toBe(false);
      expect(await created(resource, REAPPLY.metadata)).toBe(false);
    }
  });

  test("also while every policy only restores", async () => {
    await register([clusterPolicy("p", { namespaceSelector: {}, podSelector: {} })]);
    await eventually("the hook to be in force", () => asked("noted", NEW_IMAGE));
    expect(await asked("noted", LABEL)).toBe(false);
    expect(await asked("noted", { metadata: { annotations: { [PROVENANCE]: null } } })).toBe(true);
    expect(await asked("noted", { metadata: { annotations: { [PROVENANCE]: "{ }" } } })).toBe(true);
    expect(await asked("plain", NEW_IMAGE)).toBe(false);
    expect(await asked("plain", REAPPLY)).toBe(true);
    expect(await asked("gated", LABEL)).toBe(false);
    expect(await asked("gated", { spec: { schedulingGates: null } })).toBe(false);
  });

  test("once some policy injects, also for gated pods", async () => {
    await register([clusterPolicy("p", { namespaceSelector: {}, podSelector: {}, onUpdate: "Inject" })]);
    await eventually("the hook to be in force", () => asked("gated", LABEL));
    expect(await asked("gated", { spec: { schedulingGates: null } })).toBe(true);
    expect(await asked("plain", LABEL)).toBe(false);
    expect(await asked("noted", LABEL)).toBe(false);
  });

  test("never for pods being deleted, nor for a status", async () => {
    expect(await asked("going", NEW_IMAGE)).toBe(false);
    expect(await asked("going", { metadata: { finalizers: null } })).toBe(false);
    const status = { status: { message: "reported" } };
    const { status: code } = await cluster().request("PATCH", `${pods()}/noted/status?dryRun=All`, status);
    expect(code).toBe(200);
  });
});
