// A module with a ledger, a managed object and a hook with a fail-open shadow hook, through the real shell up to the
// API server: the objects that the leader registers for it, and that only reviews of the API server itself write the
// ledger.
import { request } from "node:https";
import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import { type AdmissionServer, startAdmission } from "../../src/admission/admission-server.ts";
import { allow, need } from "../../src/core/decision/decision.ts";
import type { Need } from "../../src/core/decision/need.ts";
import type { Effects } from "../../src/core/evaluate/effects.ts";
import { at, type Json, type JsonObject, listAt, stringAt } from "../../src/core/json.ts";
import { SILENT } from "../../src/core/log.ts";
import { defineModule } from "../../src/core/module/module.ts";
import type { StateKind } from "../../src/core/policy/kind.ts";
import { type Certificates, openCertificates } from "../../src/operator/certificates/certificates.ts";
import { InstallationController } from "../../src/operator/controller/installation-controller.ts";
import { Objects } from "../../src/operator/install/apply.ts";
import { planUninstall } from "../../src/operator/uninstall/uninstall-plan.ts";
import { finding } from "../builders/module.ts";
import { eventually } from "../cluster/access/wait.ts";
import { describeOwnCluster } from "../cluster/describe.ts";
import { createUsherService } from "./fixtures/usher-service.ts";
import { type OpenLive, openLive } from "./live-source.ts";

const NAMESPACE = "usher-system";
const HOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/usher";
const POLICY = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/usher-ledger";
const CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const USAGES = "/apis/ledger.test.usher.dev/v1/usages";

function stateKind(kind: string, more: Partial<StateKind> = {}): StateKind {
  const singular = kind.toLowerCase();
  return {
    group: "ledger.test.usher.dev",
    kind,
    plural: `${singular}s`,
    singular,
    scope: "Cluster",
    summary: "Kept by a test.",
    versions: [{ name: "v1", storage: true, spec: z.strictObject({ pods: z.array(z.string()) }) }],
    verbs: ["create", "update"],
    ...more,
  };
}

const BORROWED = stateKind("Borrowed", { takeOver: "never" });

const LEDGER = defineModule({
  name: "ledger",
  summary: "counts pods by namespace",
  kinds: [],
  stateKinds: [
    stateKind("Usage"),
    BORROWED,
    stateKind("Unused", { registered: [{ setting: ["unused"], equals: true, default: false }] }),
  ],
  reads: [],
  hooks: () => [
    {
      name: "ledger",
      module: "ledger",
      phase: "validate",
      rules: [{ groups: [""], versions: ["v1"], resources: ["pods"], operations: ["CREATE"] }],
      failure: "closed",
      tooLarge: "deny",
      openShadow: true,
      timeoutSeconds: 5,
      sideEffects: "NoneOnDryRun",
    },
  ],
  assemble: () => ({
    validate: ({ request: { namespace, name }, facts }) => {
      const resource = "usages.ledger.test.usher.dev";
      const rests: Need = { get: { resource, name: namespace }, live: true };
      const fact = facts.of(rests);
      if (fact === undefined) return need(rests);
      const stored = "found" in fact ? fact.found : undefined;
      const pods = [...listAt(stored, "spec", "pods"), name];
      return allow([finding({ policy: { kind: "Usage", name: namespace } })], {
        resource,
        name: namespace,
        object: { apiVersion: "ledger.test.usher.dev/v1", kind: "Usage", spec: { pods } },
        resourceVersion: stringAt(stored, "metadata", "resourceVersion"),
        rests,
      });
    },
  }),
  managed: {
    why: "test managed objects",
    resources: [
      {
        group: "admissionregistration.k8s.io",
        version: "v1",
        resource: "validatingadmissionpolicies",
        kind: "ValidatingAdmissionPolicy",
        scope: "Cluster",
      },
    ],
    desired: () => [
      {
        apiVersion: "admissionregistration.k8s.io/v1",
        kind: "ValidatingAdmissionPolicy",
        metadata: { name: "usher-ledger" },
        spec: {
          failurePolicy: "Ignore",
          matchConstraints: {
            resourceRules: [
              {
                apiGroups: ["none.example"],
                apiVersions: ["v1"],
                operations: ["CREATE"],
                resources: ["nothings"],
              },
            ],
          },
          validations: [{ expression: "true" }],
        },
      },
    ],
  },
});

describeOwnCluster("a module with a ledger", { without: ["kube-scheduler", "kwok"] }, (cluster) => {
  let live: OpenLive;
  let certificates: Certificates;
  let server: AdmissionServer;
  let controller: InstallationController;
  const effects: Effects[] = [];
  let borrowed: JsonObject;

  beforeAll(async () => {
    borrowed = (await cluster().call("POST", CRDS, {
      apiVersion: "apiextensions.k8s.io/v1",
      kind: "CustomResourceDefinition",
      metadata: { name: "borroweds.ledger.test.usher.dev" },
      spec: {
        group: BORROWED.group,
        names: { kind: "Borrowed", plural: "borroweds", singular: "borrowed", listKind: "BorrowedList" },
        scope: "Cluster",
        versions: [
          { name: "v1", served: true, storage: true, schema: { openAPIV3Schema: { type: "object" } } },
        ],
      },
    })) as JsonObject;
    const clusterIP = await createUsherService(cluster(), NAMESPACE);
    live = await openLive(cluster(), [LEDGER]);
    await live.source.cache.waitForSync();
    const shared = { client: live.client, log: SILENT };
    certificates = await openCertificates({ ...shared, namespace: NAMESPACE, refreshEveryMs: 200 });
    server = await startAdmission({
      source: live.source,
      log: SILENT,
      port: 0,
      opsPort: 0,
      certificate: certificates,
      acceptsToken: certificates.acceptsToken,
      effects: (one) => void effects.push(one),
    });
    await cluster().route(clusterIP, 443, server.webhookAddress.port);
    const { assembly } = live.source;
    controller = new InstallationController({
      ...shared,
      assembly,
      certificates,
      version: "0.0.0",
      resyncMs: 200,
    });
    controller.start();
    await eventually("the webhook", async () => (await cluster().request("GET", HOOKS)).status === 200);
    await eventually("the ledger", async () => (await cluster().request("GET", USAGES)).status === 200);
  });

  afterAll(async () => {
    await controller?.stop();
    certificates?.stop();
    await server?.close();
    await live?.[Symbol.asyncDispose]();
  });

  const createPod = (namespace: string, name: string) =>
    cluster().request("POST", `/api/v1/namespaces/${namespace}/pods`, {
      metadata: { name },
      spec: { containers: [{ name: "c", image: "any" }] },
    });
  const pods = async (namespace: string) =>
    listAt((await cluster().request("GET", `${USAGES}/${namespace}`)).body, "spec", "pods");

  /** A review as an API server sends it, from a client that can only reach the port. */
  function forge(path: string, name: string): Promise<Json> {
    const { port } = server.webhookAddress;
    const review = {
      apiVersion: "admission.k8s.io/v1",
      kind: "AdmissionReview",
      request: {
        uid: "1",
        kind: { group: "", version: "v1", kind: "Pod" },
        resource: { group: "", version: "v1", resource: "pods" },
        operation: "CREATE",
        namespace: "default",
        name,
        userInfo: { username: "mallory" },
        object: { apiVersion: "v1", kind: "Pod", metadata: { name, namespace: "default" } },
      },
    };
    const { promise, resolve, reject } = Promise.withResolvers<Json>();
    const options = { host: "127.0.0.1", port, path, method: "POST", rejectUnauthorized: false };
    const sent = request({ ...options, headers: { "content-type": "application/json" } }, (response) => {
      response.setEncoding("utf8");
      let text = "";
      response.on("data", (part: string) => {
        text += part;
      });
      response.on("end", () => resolve(JSON.parse(text) as Json));
    });
    sent.on("error", reject);
    sent.end(JSON.stringify(review));
    return promise;
  }

  test("the API server's reviews carry the token, write the ledger and have effects", async () => {
    const made = await eventually("a pod admitted", async () => {
      const answer = await createPod("default", "first");
      return answer.status === 201 && answer;
    });
    expect(made.status).toBe(201);
    expect(await pods("default")).toEqual(["first"]);
    await eventually("its effects", () => effects.some(({ tallies }) => tallies.length > 0));
    const path = stringAt(
      await cluster().call("GET", HOOKS),
      "webhooks",
      0,
      "clientConfig",
      "service",
      "path",
    );
    expect(path).toBe(`/${certificates.pathToken}/validate/ledger`);
  });

  test.each([
    ["no token", () => "/validate/ledger"],
    ["another token", () => `/${"0".repeat(40)}/validate/ledger`],
  ])("a forged review with %s is answered, and writes nothing", async (_, path) => {
    const before = await cluster().call("GET", `${USAGES}/default`);
    const counted = effects.length;
    const answer = await forge(path(), "forged");
    expect(at(answer, "response", "allowed")).toBe(false);
    expect(stringAt(answer, "response", "status", "message")).toMatch(/USHER-E03/);
    expect(await cluster().call("GET", `${USAGES}/default`)).toEqual(before);
    expect(effects.length).toBe(counted);
  });

  test("the leader registers the configured state kinds, and leaves another owner's CRD", async () => {
    const names = listAt(await cluster().call("GET", CRDS), "items").map((one) =>
      at(one, "metadata", "name"),
    );
    expect(names).toContain("usages.ledger.test.usher.dev");
    expect(names).not.toContain("unuseds.ledger.test.usher.dev");
    const now = await cluster().call("GET", `${CRDS}/borroweds.ledger.test.usher.dev`);
    expect(at(now, "spec")).toEqual(at(borrowed, "spec"));
    expect(at(now, "metadata", "labels")).toBeUndefined();
  });

  test("a managed object is created and repaired, and an uninstall removes it before the webhooks", async () => {
    const expression = async () =>
      at((await cluster().request("GET", POLICY)).body, "spec", "validations", 0, "expression");
    await eventually("the policy", async () => (await expression()) === "true");
    await cluster().call("PATCH", POLICY, [
      { op: "replace", path: "/spec/validations/0/expression", value: "false" },
    ]);
    await eventually("the repair", async () => (await expression()) === "true");
    await cluster().call("DELETE", POLICY);
    await eventually("it to come back", async () => (await expression()) === "true");
    const { assembly } = live.source;
    const webhooks = [await cluster().call("GET", HOOKS)] as JsonObject[];
    const removals = await planUninstall(new Objects(live.client), webhooks, assembly.modules, {
      customResources: true,
    });
    expect(removals.map(({ live: { kind }, change }) => `${kind} ${change}`)).toEqual([
      "ValidatingAdmissionPolicy delete",
      "ValidatingWebhookConfiguration delete",
      "CustomResourceDefinition delete",
      "CustomResourceDefinition stays",
    ]);
  });

  test("the fail-open shadow hook covers the control plane's namespaces, and requests fail only where fail-closed", async () => {
    expect((await createPod("kube-public", "second")).status).toBe(201);
    expect(await pods("kube-public")).toEqual(["second"]);
    // Also ends the connections that the API server keeps open.
    await server.close();
    const closed = await createPod("default", "third");
    expect(closed.status).toBe(500);
    // The message shows the URL, which is why the token is rotated.
    expect(stringAt(closed.body, "message")).toContain(`/${certificates.pathToken}/validate/ledger`);
    expect((await createPod("kube-public", "fourth")).status).toBe(201);
  });
});
