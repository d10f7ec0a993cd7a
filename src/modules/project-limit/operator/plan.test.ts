import { describe, expect, test } from "vitest";
import { limits } from "../../../../test/builders/project-limit.ts";
import { at, type JsonObject, listAt, stringAt } from "../../../core/json.ts";
import { parseVersion } from "../../../core/kubernetes/versions.ts";
import type { OperandReference, OperandState, OperandStep } from "../../../core/module/operator.ts";
import { OPERAND } from "../operand-names.ts";
import { operandOf } from "./operand.ts";
import { planOperand } from "./plan.ts";
import { USHER_WEBHOOK, WEBHOOK } from "./webhook.ts";

const NOW = Date.parse("2026-01-01T00:00:00Z");
const VERSION = parseVersion("1.37.1");
const CERTIFICATE = { hash: "certificate", trusted: true };

interface Given extends Partial<OperandState> {
  readonly stored?: readonly JsonObject[];
}

function keyOf(object: OperandReference): string {
  return `${stringAt(object, "kind")} ${stringAt(object, "metadata", "name")}`;
}

function planned(spec: JsonObject, { stored = [], ...given }: Given = {}) {
  if (VERSION === undefined) throw new Error("no version");
  const all = new Map(stored.map((object) => [keyOf(object), object]));
  return planOperand({
    owner: limits(spec),
    valid: limits(spec),
    live: (reference) => all.get(keyOf(reference)),
    image: "registry/usher@sha256:1",
    ready: false,
    certificate: CERTIFICATE,
    caBundle: undefined,
    pathToken: "token",
    secrets: { apply: [], remove: [] },
    serverVersion: { effective: VERSION, binary: VERSION },
    failure: undefined,
    now: NOW,
    ...given,
  });
}

const describeStep = (step: OperandStep) =>
  "apply" in step ? String(step.apply["kind"]) : `remove ${String(step.remove["kind"])}`;

function applied(steps: readonly OperandStep[], kind: string): JsonObject {
  const found = steps.find((step) => "apply" in step && step.apply["kind"] === kind);
  if (found === undefined || !("apply" in found)) throw new Error(`no ${kind}`);
  return found.apply;
}

const conditionsOf = (status: JsonObject) =>
  Object.fromEntries(
    listAt(status, "conditions").map((one) => [at(one, "type"), `${at(one, "status")} ${at(one, "reason")}`]),
  );

/** The DaemonSet as its controller leaves it. */
function daemonSet(spec: JsonObject, desired: number, more: JsonObject = {}): JsonObject {
  const wanted = applied(planned(spec).steps, "DaemonSet");
  return {
    ...wanted,
    metadata: { ...(wanted["metadata"] as JsonObject), generation: 1, uid: "of-daemon-set" },
    status: {
      observedGeneration: 1,
      desiredNumberScheduled: desired,
      updatedNumberScheduled: desired,
      numberReady: desired,
      ...more,
    },
  };
}

const registered = { ...WEBHOOK, metadata: { name: OPERAND.webhook, uid: "of-webhook" } };

describe("the order", () => {
  test("certificate, configuration, workload; no webhook before a pod is ready", () => {
    const secret = { apiVersion: "v1", kind: "Secret", metadata: { name: "s" } };
    const { steps } = planned({}, { secrets: { apply: [secret], remove: [] } });
    expect(steps.map(describeStep)).toEqual([
      "Secret",
      "ServiceAccount",
      "ClusterRole",
      "ClusterRoleBinding",
      "Role",
      "RoleBinding",
      "PriorityLevelConfiguration",
      "FlowSchema",
      "Lease",
      "Service",
      "ConfigMap",
      "DaemonSet",
    ]);
  });

  test("Certificates and Issuers of cert-manager are removed before another issuer's Secret, and only then", () => {
    const metadata = {
      name: OPERAND.servingSecret,
      annotations: { "cert-manager.io/certificate-name": "a" },
    };
    const secret = { kind: "Secret", metadata };
    const removed = (certificates: string, stored: readonly JsonObject[]) =>
      planned({ certificates }, { stored, secrets: { apply: [], remove: [secret] } })
        .steps.filter((step) => "remove" in step)
        .map(describeStep);
    const all = ["Issuer", "Certificate", "Issuer", "Certificate", "Secret"].map((kind) => `remove ${kind}`);
    expect(removed("Own", [secret])).toEqual(all);
    expect(removed("ServiceCA", [secret])).toEqual(all);
    expect(removed("CertManager", [secret])).toEqual(["remove Secret"]);
    expect(removed("Own", [])).toEqual(["remove Secret"]);
  });

  test("without a certificate there is no workload", () => {
    const { steps, status } = planned({}, { certificate: undefined });
    expect(steps.map(describeStep)).not.toContain("DaemonSet");
    expect(steps.map(describeStep).at(-1)).toBe("ConfigMap");
    expect(conditionsOf(status)).toMatchObject({ CertificatePending: "True NoCertificate" });
    expect(status).not.toHaveProperty("certHash");
  });

  test("the webhook is last, once a pod is ready", () => {
    const stored = [daemonSet({}, 3)];
    expect(planned({}, { stored }).steps.map(describeStep)).not.toContain("ValidatingWebhookConfiguration");
    const { steps } = planned({}, { stored, ready: true });
    expect(describeStep(steps.at(-1) as OperandStep)).toBe("ValidatingWebhookConfiguration");
  });

  test("a registered webhook stays while no pod is ready, and is renewed before the workload", () => {
    const { steps, status } = planned({}, { stored: [daemonSet({}, 3, { numberReady: 0 }), registered] });
    expect(describeStep(steps[0] as OperandStep)).toBe("ValidatingWebhookConfiguration");
    expect(conditionsOf(status)).toMatchObject({
      Available: "False NoReadyPod",
      Progressing: "True RollingOut",
    });
  });

  test("with no node nothing is registered", () => {
    const stored = [daemonSet({}, 0)];
    const { steps, status } = planned({}, { stored, ready: true });
    expect(steps.map(describeStep)).not.toContain("ValidatingWebhookConfiguration");
    expect(conditionsOf(status)).toMatchObject({
      NoNodes: "True NoMatchingNode",
      Available: "False NotRegistered",
      Progressing: "False AsDesired",
    });
    const removed = planned({}, { stored: [...stored, registered], ready: true }).steps;
    expect(describeStep(removed[0] as OperandStep)).toBe("remove ValidatingWebhookConfiguration");
  });

  describe("with no node, and usher installed", () => {
    const usher = (...webhooks: JsonObject[]) => ({ ...USHER_WEBHOOK, webhooks });
    const rules = [
      {
        apiGroups: ["project.openshift.io"],
        apiVersions: ["v1"],
        resources: ["projectrequests"],
        operations: ["CREATE"],
        scope: "Cluster",
      },
    ];
    const marked = (ms: number) => ({
      ...registered,
      metadata: { ...registered.metadata, annotations: { [OPERAND.leaving]: new Date(ms).toISOString() } },
    });
    const first = (now: number, ...stored: JsonObject[]) =>
      planned({}, { stored: [daemonSet({}, 0), ...stored], ready: true, now }).steps[0] as OperandStep;
    const mark = (step: OperandStep) =>
      "apply" in step ? at(step.apply, "metadata", "annotations", OPERAND.leaving) : describeStep(step);
    const removed = "remove ValidatingWebhookConfiguration";

    test("the webhook is marked, and removed once usher covers ProjectRequests again", () => {
      const since = new Date(NOW).toISOString();
      // Usher may be about to withdraw its hook.
      expect(mark(first(NOW, registered, usher({ rules })))).toBe(since);
      expect(mark(first(NOW + 999, marked(NOW), usher({ rules })))).toBe(since);
      expect(mark(first(NOW + 2_000, marked(NOW), usher()))).toBe(since);
      expect(mark(first(NOW + 2_000, marked(NOW), usher({ rules })))).toBe(removed);
    });

    test("the condition names the component that evaluates", () => {
      const said = (...stored: JsonObject[]) => {
        const { status } = planned({}, { stored: [daemonSet({}, 0), ...stored] });
        const found = listAt(status, "conditions").find((one) => at(one, "type") === "NoNodes");
        return stringAt(found, "message");
      };
      expect(said(usher({ rules }))).toContain("usher judges ProjectRequests");
      expect(said(usher())).toContain("no limit holds");
    });

    test("does not wait for an usher that never answers, or is not installed", () => {
      expect(mark(first(NOW + 29_999, marked(NOW), usher()))).toBe(new Date(NOW).toISOString());
      expect(mark(first(NOW + 30_000, marked(NOW), usher()))).toBe(removed);
      expect(mark(first(NOW, registered))).toBe(removed);
    });

    test("a mark of a fast clock does not keep it", () => {
      expect(mark(first(NOW, marked(NOW + 60_000), usher()))).toBe(new Date(NOW).toISOString());
    });

    test("the mark is removed when there are nodes again", () => {
      const stored = [daemonSet({}, 2), marked(NOW), usher({ rules })];
      const { steps } = planned({}, { stored, ready: true });
      expect(
        at(applied(steps, "ValidatingWebhookConfiguration"), "metadata", "annotations"),
      ).not.toHaveProperty(OPERAND.leaving);
    });

    test("an earlier Deployment answers until nothing calls it", () => {
      const deployment = applied(planned({ topology: "Deployment" }).steps, "Deployment");
      const steps = (...stored: JsonObject[]) =>
        planned(
          { nodeSelector: { pool: "none" } },
          {
            stored: [daemonSet({ nodeSelector: { pool: "none" } }, 0), deployment, ...stored],
            ready: true,
            now: NOW + 2_000,
          },
        ).steps.map(describeStep);
      expect(steps(registered, usher())).not.toContain("remove Deployment");
      const leaves = steps(marked(NOW), usher({ rules }));
      expect(leaves[0]).toBe(removed);
      expect(leaves).not.toContain("remove Deployment");
      expect(steps(usher({ rules })).at(-1)).toBe("remove Deployment");
    });
  });

  test("if the workload's node selector was edited, the webhook stays", () => {
    const edited = daemonSet({ nodeSelector: { pool: "none" } }, 0);
    const { steps, status } = planned({}, { stored: [edited, registered] });
    expect(steps.map(describeStep)).not.toContain("remove ValidatingWebhookConfiguration");
    expect(conditionsOf(status)).toMatchObject({ NoNodes: "False Scheduled" });
  });

  test("of an invalid spec nothing is rolled out", () => {
    const { steps, status } = planned({ limits: [{ maxProjects: -1 }] });
    expect(steps).toEqual([]);
    expect(conditionsOf(status)).toMatchObject({ Degraded: "True InvalidSpec" });
  });

  test("while a spec is invalid the operand is maintained by the last valid one", () => {
    const valid = { limits: [{ maxProjects: 2 }], topology: "Deployment" };
    const invalid = limits({ limits: [{ maxProjects: -1 }], topology: "DaemonSet" });
    const { steps, status } = planned(valid, { owner: invalid });
    expect(steps).toEqual(planned(valid).steps);
    expect(conditionsOf(status)).toMatchObject({
      Degraded: "True InvalidSpec",
      Progressing: "True Creating",
    });
  });

  test("a new CA is published before its certificate is served", () => {
    const secret = (name: string) => ({ apiVersion: "v1", kind: "Secret", metadata: { name } });
    const secrets = { apply: [secret(OPERAND.pathsSecret), secret(OPERAND.servingSecret)], remove: [] };
    const { steps } = planned({}, { secrets, stored: [daemonSet({}, 2), registered], ready: true });
    expect(steps.map(describeStep).slice(0, 3)).toEqual([
      "Secret",
      "ValidatingWebhookConfiguration",
      "Secret",
    ]);
    expect(at(steps[0], "apply", "metadata", "name")).toBe(OPERAND.pathsSecret);
  });
});

describe("hashes", () => {
  const hash = (spec: JsonObject) => operandOf(limits(spec))?.configHash;

  test.each<[string, JsonObject, JsonObject]>([
    ["absent and null", { limits: [{ maxProjects: 1 }] }, { limits: [{ maxProjects: 1, users: null }] }],
    ["absent and the default", {}, { count: "Exact", failurePolicy: "Fail", serviceAccountsPer: "Account" }],
    ["an empty list and none", { limits: [] }, {}],
    [
      "an empty selector and none",
      { limits: [{ selector: {}, maxProjects: 1 }] },
      { limits: [{ maxProjects: 1 }] },
    ],
    ["the order of users", { exempt: { users: ["a", "b"] } }, { exempt: { users: ["b", "a"] } }],
    ["how the operand runs", { topology: "Deployment", transport: "Direct", podLabels: { a: "b" } }, {}],
    ["how long API servers wait", { timeoutSeconds: 9 }, {}],
  ])("%s have the same", (_what, one, other) => {
    expect(hash(one)).toBe(hash(other));
  });

  test("another limit, and another order of rules, have another", () => {
    const specs = [
      { limits: [{ maxProjects: 1 }, { maxProjects: 2 }] },
      { limits: [{ maxProjects: 2 }, { maxProjects: 1 }] },
      { limits: [{ maxProjects: 1 }] },
      { maxProjectsForSystemUsers: 1 },
      { maxProjectsForSystemUsers: 0 },
    ];
    expect(new Set(specs.map(hash)).size).toBe(specs.length);
  });

  test("both are on the template, and in the status", () => {
    const { steps, status } = planned({});
    const annotations = at(applied(steps, "DaemonSet"), "spec", "template", "metadata", "annotations");
    expect(annotations).toEqual({
      [OPERAND.configurationHash]: hash({}),
      [OPERAND.certificateHash]: "certificate",
    });
    expect(status).toMatchObject({ configHash: hash({}), certHash: "certificate" });
  });

  test("an untrusted certificate waits, if there is a trusted one", () => {
    const certificate = { hash: "next", trusted: false };
    const onTemplate = (given: Given) =>
      at(
        applied(planned({}, { certificate, ...given }).steps, "DaemonSet"),
        "spec",
        "template",
        "metadata",
        "annotations",
        OPERAND.certificateHash,
      );
    expect(onTemplate({ stored: [daemonSet({}, 1), registered] })).toBe("certificate");
    expect(onTemplate({})).toBe("next");
    expect(conditionsOf(planned({}, { certificate }).status)).toMatchObject({
      CertificatePending: "True NotTrusted",
    });
  });
});

describe("objects", () => {
  test("the file has the limits, and not how the operand runs", () => {
    const { steps } = planned({
      limits: [{ selector: { level: "gold" }, maxProjects: 3 }],
      maxProjectsForSystemUsers: 2,
      topology: "Deployment",
      nodeSelector: { pool: "infra" },
      count: null,
    });
    const text = stringAt(applied(steps, "ConfigMap"), "data", OPERAND.configurationKey) ?? "";
    expect(JSON.parse(text)).toEqual({
      apiVersion: "operator.project.openshift.io/v1",
      kind: "ProjectRequestLimitConfig",
      limits: [{ selector: { level: "gold" }, maxProjects: 3 }],
      maxProjectsForSystemUsers: 2,
    });
  });

  test("the custom resource owns all objects, and so does the webhook, so that it is deleted first", () => {
    const owner = {
      apiVersion: "operator.project.openshift.io/v1",
      kind: "ProjectRequestLimit",
      name: "cluster",
      uid: "uid-of-cluster",
      controller: true,
    };
    const { steps } = planned({}, { stored: [daemonSet({}, 1), registered], ready: true });
    for (const step of steps) {
      if (!("apply" in step)) continue;
      const owners = listAt(step.apply, "metadata", "ownerReferences");
      const isWebhook = step.apply["kind"] === WEBHOOK["kind"];
      expect(owners[0]).toEqual(owner);
      expect(owners.slice(1)).toEqual(
        isWebhook
          ? []
          : [
              {
                apiVersion: WEBHOOK["apiVersion"],
                kind: WEBHOOK["kind"],
                name: OPERAND.webhook,
                uid: "of-webhook",
              },
            ],
      );
      expect(stringAt(step.apply, "kind")).not.toBe("Namespace");
      expect(at(step.apply, "metadata", "finalizers")).toBeUndefined();
    }
  });

  test("pods replace each other one by one; a single one is never missing", () => {
    const strategy = (desired: number) =>
      at(
        applied(planned({}, { stored: [daemonSet({}, desired)] }).steps, "DaemonSet"),
        "spec",
        "updateStrategy",
        "rollingUpdate",
      );
    expect(strategy(3)).toEqual({ maxUnavailable: 1, maxSurge: 0 });
    expect(strategy(1)).toEqual({ maxUnavailable: 0, maxSurge: 1 });
  });

  test("the other topology is removed once all pods of this one are ready", () => {
    const spec = { topology: "Deployment" };
    const old = daemonSet({}, 3);
    const wanted = applied(planned(spec, { stored: [old] }).steps, "Deployment");
    expect(at(wanted, "spec", "replicas")).toBe(2);
    expect(at(wanted, "spec", "strategy", "rollingUpdate", "maxUnavailable")).toBe(1);
    const deployment = (readyReplicas: number) => ({
      ...wanted,
      metadata: { ...(wanted["metadata"] as JsonObject), generation: 1 },
      status: { observedGeneration: 1, updatedReplicas: 2, readyReplicas },
    });
    const steps = (ready: number) =>
      planned(spec, { stored: [old, deployment(ready)] }).steps.map(describeStep);
    expect(steps(1)).not.toContain("remove DaemonSet");
    expect(steps(2).at(-1)).toBe("remove DaemonSet");
  });

  test.each([
    ["ServiceCA", ["service.beta.openshift.io", "service.alpha.openshift.io"], 0],
    ["CertManager", [], 4],
    ["Own", [], 0],
  ])("certificates by %s", (certificates, domains, made) => {
    const { steps } = planned({ certificates }, { stored: [registered] });
    const service = applied(steps, "Service");
    expect(Object.keys(at(service, "metadata", "annotations") ?? {})).toEqual(
      domains.map((domain) => `${domain}/serving-cert-secret-name`),
    );
    const issued = steps.filter((step) => ["Issuer", "Certificate"].includes(describeStep(step)));
    expect(issued).toHaveLength(made);
    expect(
      Object.keys(at(applied(steps, "ValidatingWebhookConfiguration"), "metadata", "annotations") ?? {}),
    ).toEqual(
      {
        ServiceCA: ["service.beta.openshift.io/inject-cabundle"],
        CertManager: ["cert-manager.io/inject-ca-from"],
      }[certificates] ?? [],
    );
  });

  test("the webhook covers only ProjectRequests, fail-closed", () => {
    const { steps } = planned({ timeoutSeconds: 7 }, { stored: [registered], caBundle: "Q0E=" });
    expect(listAt(applied(steps, "ValidatingWebhookConfiguration"), "webhooks")).toMatchObject([
      {
        name: OPERAND.webhook,
        failurePolicy: "Fail",
        timeoutSeconds: 7,
        sideEffects: "NoneOnDryRun",
        matchPolicy: "Equivalent",
        clientConfig: {
          caBundle: "Q0E=",
          service: { name: "admission-server", namespace: OPERAND.namespace, port: 443 },
        },
        rules: [
          {
            apiGroups: ["project.openshift.io"],
            apiVersions: ["v1"],
            resources: ["projectrequests"],
            operations: ["CREATE"],
            scope: "Cluster",
          },
        ],
      },
    ]);
  });
});

describe("the status", () => {
  test("reports that all is as desired", () => {
    const { status } = planned({}, { stored: [daemonSet({}, 3), registered], ready: true });
    expect(status).toMatchObject({ desired: 3, ready: 3 });
    expect(conditionsOf(status)).toEqual({
      Available: "True Ready",
      Progressing: "False AsDesired",
      Degraded: "False AsDesired",
      CertificatePending: "False Found",
      NoNodes: "False Scheduled",
    });
  });

  test("reports failures, and rollouts that do not end", () => {
    expect(conditionsOf(planned({}, { failure: "no right" }).status)).toMatchObject({
      Degraded: "True Failed",
    });
    const { status } = planned({}, { now: NOW - 3_600_000 });
    const owner = { ...limits({}), status };
    expect(conditionsOf(planned({}, { owner }).status)).toMatchObject({ Degraded: "True Stuck" });
  });
});
