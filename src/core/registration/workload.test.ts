import { expect, test } from "vitest";
import { DEFAULT_INSTALLATION, type Installation } from "../installation/installation.ts";
import { at, type JsonObject, listAt, stringAt } from "../json.ts";
import { criticalPodsQuota } from "./pods/restricted-pod.ts";
import { type WorkloadOptions, workloadObjects } from "./workload.ts";

const INSTALLATION = { ...DEFAULT_INSTALLATION, namespace: "hall" };

function made(kind: string, options: Partial<WorkloadOptions> = {}): JsonObject {
  const found = workloadObjects(INSTALLATION, { image: "usher:1", ...options }).find(
    (one) => one["kind"] === kind,
  );
  if (found === undefined) throw new Error(`no ${kind}`);
  return found;
}

test("all objects are in usher's namespace, and the Deployment comes after its pods' dependencies", () => {
  const objects = workloadObjects(INSTALLATION, { image: "usher:1" });
  expect(objects.map(({ kind }) => kind)).toEqual([
    "ConfigMap",
    "Service",
    "Deployment",
    "PodDisruptionBudget",
    "Service",
  ]);
  for (const object of objects) expect(stringAt(object, "metadata", "namespace")).toBe("hall");
});

test("the Service, the budget and the Deployment select the same pods, with any additional labels", () => {
  const podLabels = { team: "a", "app.kubernetes.io/component": "other" };
  const deployment = made("Deployment", { podLabels });
  const labels = at(deployment, "spec", "template", "metadata", "labels");
  const selector = at(deployment, "spec", "selector", "matchLabels");
  expect(labels).toMatchObject({ ...(selector as JsonObject), team: "a" });
  expect(at(made("Service"), "spec", "selector")).toEqual(selector);
  expect(at(made("PodDisruptionBudget"), "spec", "selector", "matchLabels")).toEqual(selector);
  // A selector is immutable: additional labels must not reach it.
  expect(selector).toEqual(at(made("Deployment"), "spec", "selector", "matchLabels"));
});

test("the Service leads to the port that is served", () => {
  const container = at(made("Deployment"), "spec", "template", "spec", "containers", 0);
  const target = stringAt(made("Service"), "spec", "ports", 0, "targetPort");
  const port = listAt(container, "ports").find((one) => stringAt(one, "name") === target);
  expect(at(port, "containerPort")).toBe(8443);
  expect(listAt(container, "args")).toContain("--port=8443");
  expect(at(made("Service"), "spec", "ports", 0, "port")).toBe(443);
});

test("no liveness probe runs before it serves, for minutes if need be", () => {
  const probe = at(made("Deployment"), "spec", "template", "spec", "containers", 0, "startupProbe");
  expect(probe).toMatchObject({ httpGet: { path: "/livez", port: "ops" }, periodSeconds: 1 });
  expect(Number(at(probe, "failureThreshold"))).toBeGreaterThanOrEqual(300);
});

test("it fits the Pod Security level restricted", () => {
  const spec = at(made("Deployment"), "spec", "template", "spec");
  expect(at(spec, "securityContext")).toMatchObject({
    runAsNonRoot: true,
    seccompProfile: { type: "RuntimeDefault" },
  });
  for (const container of listAt(spec, "containers")) {
    expect(at(container, "securityContext")).toMatchObject({
      allowPrivilegeEscalation: false,
      capabilities: { drop: ["ALL"] },
    });
    for (const port of listAt(container, "ports")) expect(at(port, "hostPort")).toBeUndefined();
  }
  for (const field of ["hostNetwork", "hostPID", "hostIPC"]) expect(at(spec, field)).toBeUndefined();
  for (const volume of listAt(spec, "volumes")) expect(at(volume, "hostPath")).toBeUndefined();
});

test("another configuration is another pod template, the same one is not", () => {
  const annotation = (configuration: JsonObject) =>
    at(made("Deployment", { configuration }), "spec", "template", "metadata", "annotations");
  expect(annotation({ openNamespaces: ["a"] })).toEqual(annotation({ openNamespaces: ["a"] }));
  expect(annotation({ openNamespaces: ["a"] })).not.toEqual(annotation({ openNamespaces: ["b"] }));
  const file = stringAt(
    made("ConfigMap", { configuration: { openNamespaces: ["a"] } }),
    "data",
    "configuration.yaml",
  );
  expect(JSON.parse(file ?? "")).toEqual({
    apiVersion: "usher.dev/v1alpha1",
    kind: "UsherConfiguration",
    spec: { namespace: "hall", openNamespaces: ["a"] },
  });
});

test("its pods have a system priority, and a quota admits them if the cluster restricts that", () => {
  const spec = at(made("Deployment"), "spec", "template", "spec");
  expect(at(spec, "priorityClassName")).toBe("system-cluster-critical");
  expect(at(criticalPodsQuota("hall"), "spec", "scopeSelector", "matchExpressions")).toEqual([
    { scopeName: "PriorityClass", operator: "In", values: ["system-cluster-critical"] },
  ]);
});

test("runs on control-plane nodes only if configured, and then tolerates both of their taints", () => {
  const spec = (controlPlaneNodes: boolean, tolerations: JsonObject[] = []) =>
    at(
      workloadObjects({ ...INSTALLATION, controlPlaneNodes }, { image: "usher:1", tolerations }).find(
        (one) => one["kind"] === "Deployment",
      ),
      "spec",
      "template",
      "spec",
    );
  expect(at(spec(false), "nodeSelector")).toBeUndefined();
  expect(at(spec(false), "tolerations")).toBeUndefined();
  const own = { key: "own", operator: "Exists" };
  expect(at(spec(true, [own]), "nodeSelector")).toEqual({ "node-role.kubernetes.io/control-plane": "" });
  expect(at(spec(true, [own]), "tolerations")).toEqual([
    own,
    ...["control-plane", "master"].map((role) => ({
      key: `node-role.kubernetes.io/${role}`,
      operator: "Exists",
      effect: "NoSchedule",
    })),
  ]);
});

test("a NetworkPolicy only if configured: the webhook port for all or for some, and usher's own connections are not blocked", () => {
  const policies = (networkPolicy?: Installation["networkPolicy"]) =>
    workloadObjects(
      { ...INSTALLATION, ...(networkPolicy && { networkPolicy }) },
      { image: "usher:1" },
    ).filter((one) => one["kind"] === "NetworkPolicy");
  expect(policies()).toEqual([]);
  expect(policies({ enabled: false, webhookCidrs: [] })).toEqual([]);
  const [open] = policies({ enabled: true, webhookCidrs: [] });
  expect(at(open, "spec")).toEqual({
    podSelector: { matchLabels: { "app.kubernetes.io/name": "usher" } },
    policyTypes: ["Ingress", "Egress"],
    ingress: [{ ports: [{ port: "https", protocol: "TCP" }] }, { ports: [{ port: "ops", protocol: "TCP" }] }],
    egress: [{}],
  });
  const [closed] = policies({ enabled: true, webhookCidrs: ["10.0.0.0/28", "fd00::/64"] });
  expect(at(closed, "spec", "ingress", 0, "from")).toEqual([
    { ipBlock: { cidr: "10.0.0.0/28" } },
    { ipBlock: { cidr: "fd00::/64" } },
  ]);
  expect(at(closed, "spec", "ingress", 1, "from")).toBeUndefined();
  // Ports by name, independent of their numbers.
  const ports = listAt(made("Deployment"), "spec", "template", "spec", "containers", 0, "ports");
  expect(ports.map((port) => stringAt(port, "name"))).toEqual(["https", "ops"]);
});
