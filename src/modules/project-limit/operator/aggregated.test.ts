import { describe, expect, test } from "vitest";
import { at, type JsonObject, listAt, stringAt } from "../../../core/json.ts";
import type { OperandPlan, OperandState } from "../../../core/module/operator.ts";
import { OPERAND } from "../operand-names.ts";
import { API_SERVICE, KUBE_CA, OPENSHIFT_PROJECTS, READER_BINDING } from "./aggregated.ts";
import { operator } from "./operator.ts";
import { WEBHOOK } from "./webhook.ts";
import { workloadReference } from "./workload.ts";

const key = ({ kind, metadata }: JsonObject) =>
  `${kind} ${stringAt(metadata, "namespace") ?? ""}/${stringAt(metadata, "name")}`;
const step = (one: OperandPlan["steps"][number]) =>
  "apply" in one ? key(one.apply) : `remove ${key(one.remove)}`;
const applied = ({ steps }: OperandPlan, reference: JsonObject): JsonObject | undefined =>
  steps.flatMap((one) => ("apply" in one && key(one.apply) === key(reference) ? [one.apply] : []))[0];
const condition = ({ status }: OperandPlan, type: string) =>
  listAt(status, "conditions").find((one) => at(one, "type") === type);

/** A cluster that applies plans, with one node, until the test changes it. */
class Cluster {
  readonly objects = new Map<string, JsonObject>([
    [key(KUBE_CA), { ...KUBE_CA, data: { "ca.crt": "the kube CA" } }],
  ]);
  spec: JsonObject = {};
  ready = true;
  nodes = 1;
  caBundle: string | undefined;
  serving: JsonObject | undefined = { type: "Available", status: "True" };

  plan(): OperandPlan {
    const live = (reference: JsonObject) => this.objects.get(key(reference));
    const owner = {
      apiVersion: "operator.project.openshift.io/v1",
      kind: "ProjectRequestLimit",
      metadata: { name: "cluster", uid: "u", generation: 1 },
      spec: { limits: [{ maxProjects: 1 }], ...this.spec },
    };
    const state: OperandState = {
      owner,
      valid: owner,
      live,
      image: "registry.example.com/usher@sha256:0",
      ready: this.ready,
      certificate: { hash: "h", trusted: true },
      caBundle: this.caBundle,
      pathToken: "token",
      secrets: { apply: [], remove: [] },
      serverVersion: undefined,
      failure: undefined,
      now: 0,
    };
    return operator.plan(state);
  }

  /** Applies the plan; the controllers of workloads and the aggregator follow. */
  pass(): string[] {
    const { steps } = this.plan();
    for (const one of steps) {
      if ("remove" in one) this.objects.delete(key(one.remove));
      else this.objects.set(key(one.apply), { ...one.apply, ...this.statusOf(one.apply) });
    }
    return steps.map(step);
  }

  private statusOf(object: JsonObject): JsonObject {
    if (object["kind"] === "DaemonSet") {
      const count = { desiredNumberScheduled: this.nodes, updatedNumberScheduled: this.nodes };
      return { status: { ...count, numberReady: this.nodes } };
    }
    if (object["kind"] === "APIService" && this.serving !== undefined)
      return { status: { conditions: [this.serving] } };
    return {};
  }

  get asks(): string | undefined {
    return stringAt(listAt(this.objects.get(key(WEBHOOK)), "webhooks")[0], "clientConfig", "service", "name");
  }

  has(reference: JsonObject): boolean {
    return this.objects.has(key(reference));
  }
}

function settled(spec: JsonObject, changes: Partial<Cluster> = {}): Cluster {
  const cluster = Object.assign(new Cluster(), { spec, ...changes });
  for (let i = 0; i < 6; i++) cluster.pass();
  return cluster;
}

const AGGREGATED = { transport: "Aggregated", certificates: "ServiceCA" };
const DIRECT = { transport: "Direct", certificates: "ServiceCA" };

test("the webhook calls the API server itself, by the path of the API and with the kube CA; only the APIService gets injection", () => {
  const cluster = settled(AGGREGATED);
  const webhook = cluster.objects.get(key(WEBHOOK));
  expect(at(listAt(webhook, "webhooks")[0], "clientConfig")).toEqual({
    service: {
      namespace: "default",
      name: "kubernetes",
      port: 443,
      path: "/apis/projectrequestlimits.admission.project.openshift.io/v1/validatingadmissionreviews",
    },
    caBundle: Buffer.from("the kube CA").toString("base64"),
  });
  expect(at(webhook, "metadata", "annotations")).toBeUndefined();
  const service = cluster.objects.get(key(API_SERVICE));
  expect(at(service, "metadata", "annotations")).toEqual({
    "service.beta.openshift.io/inject-cabundle": "true",
  });
  expect(at(service, "spec")).toEqual({
    group: OPERAND.apiGroup,
    version: "v1",
    groupPriorityMinimum: 1000,
    versionPriority: 15,
    service: { name: "admission-server", namespace: "openshift-project-request-limit-operator", port: 443 },
  });
  expect(condition(cluster.plan(), "Available")).toMatchObject({ status: "True" });
});

describe("a spec that names no transport", () => {
  const projects = (spec: JsonObject) =>
    new Map([
      [key(KUBE_CA), { ...KUBE_CA, data: { "ca.crt": "the kube CA" } }],
      [key(OPENSHIFT_PROJECTS), { ...OPENSHIFT_PROJECTS, spec }],
    ]);
  const service = { name: "api", namespace: "openshift-apiserver" };

  test("is called as an aggregated API if OpenShift's API server serves ProjectRequests", () => {
    const cluster = settled({}, { objects: projects({ group: "project.openshift.io", service }) });
    expect(cluster.asks).toBe("kubernetes");
    expect(cluster.has(API_SERVICE)).toBe(true);
  });

  test.each<[string, Map<string, JsonObject>]>([
    ["nothing serves ProjectRequests", new Map()],
    ["a CRD serves ProjectRequests", projects({ group: "project.openshift.io" })],
  ])("is called by its Service if %s", (_, objects) => {
    const cluster = settled({}, { objects });
    expect(cluster.asks).toBe("admission-server");
    expect(cluster.has(API_SERVICE)).toBe(false);
  });

  test("does not override a spec that names one", () => {
    const objects = projects({ group: "project.openshift.io", service });
    expect(settled(DIRECT, { objects }).asks).toBe("admission-server");
  });
});

test("without an injector the operator writes the APIService's CA", () => {
  const cluster = settled({ ...AGGREGATED, certificates: "Own" }, { caBundle: "Ym91bmQ=" });
  expect(at(cluster.objects.get(key(API_SERVICE)), "spec", "caBundle")).toBe("Ym91bmQ=");
  expect(at(cluster.objects.get(key(API_SERVICE)), "metadata", "annotations")).toBeUndefined();
  const cm = settled({ ...AGGREGATED, certificates: "CertManager" });
  expect(at(cm.objects.get(key(API_SERVICE)), "metadata", "annotations")).toHaveProperty([
    "cert-manager.io/inject-ca-from",
  ]);
});

test("the APIService is created with the first ready pod, the webhook once it is available; the condition reports the wait", () => {
  const cluster = settled(AGGREGATED, { ready: false, serving: undefined });
  expect(cluster.has(API_SERVICE)).toBe(false);
  cluster.ready = true;
  cluster.pass();
  expect(cluster.has(API_SERVICE)).toBe(true);
  for (const serving of [
    undefined,
    { type: "Available", status: "False", message: "failing or missing response from https://10.0.0.1:8443" },
  ]) {
    Object.assign(cluster, { serving });
    cluster.pass();
    cluster.pass();
    expect(cluster.has(WEBHOOK)).toBe(false);
    const waits = condition(cluster.plan(), "Progressing");
    expect(waits).toMatchObject({ status: "True", reason: "WaitingForAPIService" });
    expect(stringAt(waits, "message")).toContain(serving?.message ?? "has not asked it yet");
  }
  cluster.serving = { type: "Available", status: "True" };
  cluster.pass();
  cluster.pass();
  expect(cluster.asks).toBe("kubernetes");
});

test("with an unavailable backend the webhook stays, and the condition reports it", () => {
  const cluster = settled(AGGREGATED);
  cluster.serving = { type: "Available", status: "False", message: "no ready addresses" };
  cluster.pass();
  expect(cluster.asks).toBe("kubernetes");
  expect(condition(cluster.plan(), "Available")).toMatchObject({
    status: "False",
    reason: "APIServiceUnavailable",
    message: expect.stringContaining("no ready addresses"),
  });
});

test("without the kube CA nothing is registered, and a registered webhook stays unchanged", () => {
  const cluster = new Cluster();
  cluster.spec = AGGREGATED;
  cluster.objects.delete(key(KUBE_CA));
  for (let i = 0; i < 6; i++) cluster.pass();
  expect(cluster.has(WEBHOOK)).toBe(false);
  expect(stringAt(condition(cluster.plan(), "Progressing"), "message")).toContain("kube-root-ca.crt");
  const running = settled(AGGREGATED);
  running.objects.delete(key(KUBE_CA));
  expect(applied(running.plan(), WEBHOOK)).toBeUndefined();
  running.pass();
  expect(running.asks).toBe("kubernetes");
});

test("Direct has neither APIService nor permissions nor the variable", () => {
  const cluster = settled(DIRECT);
  expect(cluster.asks).toBe("admission-server");
  for (const one of [API_SERVICE, READER_BINDING]) expect(cluster.has(one)).toBe(false);
  const role = { kind: "ClusterRole", metadata: { name: OPERAND.name } };
  expect(JSON.stringify(cluster.objects.get(key(role)))).not.toContain("subjectaccessreviews");
  expect(JSON.stringify(settled(AGGREGATED).objects.get(key(role)))).toContain("subjectaccessreviews");
  expect(JSON.stringify(cluster.objects.get(key(workloadReference("DaemonSet"))))).not.toContain("TRANSPORT");
});

test("from Direct to Aggregated the webhook calls directly until the API is available", () => {
  const cluster = settled(DIRECT);
  Object.assign(cluster, { spec: AGGREGATED, serving: undefined });
  for (let i = 0; i < 4; i++) {
    cluster.pass();
    expect(cluster.asks).toBe("admission-server");
  }
  cluster.serving = { type: "Available", status: "True" };
  cluster.pass();
  cluster.pass();
  expect(cluster.asks).toBe("kubernetes");
});

test("from Aggregated to Direct the webhook changes first, then the rest is removed", () => {
  const cluster = settled(AGGREGATED);
  cluster.spec = DIRECT;
  const announced = cluster.objects.get(key(API_SERVICE)) ?? {};
  const spec = { ...(announced["spec"] as JsonObject), caBundle: "aW5qZWN0ZWQ=" };
  cluster.objects.set(key(API_SERVICE), { ...announced, spec });
  expect(cluster.pass()[0]).toBe(key(WEBHOOK));
  expect(cluster.asks).toBe("admission-server");
  const [entry] = listAt(cluster.objects.get(key(WEBHOOK)), "webhooks");
  expect(at(entry, "clientConfig", "caBundle"), "until the injector has written it").toBe("aW5qZWN0ZWQ=");
  const env = () => JSON.stringify(cluster.objects.get(key(workloadReference("DaemonSet"))));
  expect([cluster.has(API_SERVICE), cluster.has(READER_BINDING), env().includes("TRANSPORT")]).toEqual([
    true,
    true,
    true,
  ]);
  cluster.pass();
  expect([cluster.has(API_SERVICE), cluster.has(READER_BINDING), env().includes("TRANSPORT")]).toEqual([
    false,
    false,
    false,
  ]);
});

test("without nodes no APIService is left: it would block the deletion of every namespace", () => {
  const cluster = settled(AGGREGATED);
  cluster.nodes = 0;
  cluster.pass();
  cluster.pass();
  expect([cluster.has(WEBHOOK), cluster.has(API_SERVICE)]).toEqual([false, false]);
  expect(condition(cluster.plan(), "NoNodes")).toMatchObject({ status: "True" });
});
