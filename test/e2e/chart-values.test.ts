// Every value of the chart has the effect that its README documents.
import { expect, test } from "vitest";
import { at, type Json, type JsonObject, listAt, stringAt } from "../../src/core/json.ts";
import { describeHelm } from "./fixtures/helm.ts";

const DIGEST = `sha256:${"a".repeat(64)}`;
const PODS = ["spec", "template", "spec"] as const;
const CONTAINER = [...PODS, "containers", 0] as const;

function named(objects: readonly JsonObject[], kind: string, name = "usher"): JsonObject {
  const found = objects.find((one) => one["kind"] === kind && stringAt(one, "metadata", "name") === name);
  if (found === undefined) throw new Error(`no ${kind} ${name} is rendered`);
  return found;
}

/** The images of replicas, watchdog and hooks. */
function podSpecs(objects: readonly JsonObject[]): (Json | undefined)[] {
  return objects.flatMap((object) => {
    const kind = String(object["kind"]);
    if (kind === "Pod") return [at(object, "spec")];
    return ["Deployment", "Job"].includes(kind) ? [at(object, ...PODS)] : [];
  });
}

describeHelm("values of the chart", (helm) => {
  const deployment = async (values: JsonObject) => named(await helm().template(values), "Deployment");

  test.each<[JsonObject, string]>([
    [
      { registry: "registry.example.com/", repository: "team/usher" },
      "registry.example.com/team/usher:0.1.0",
    ],
    [{ tag: "v2" }, "usher:v2"],
    [{ registry: "localhost:5000", tag: "v2", digest: DIGEST }, `localhost:5000/usher@${DIGEST}`],
  ])("image %j is %s, for replicas, watchdog and hooks", async (image, wanted) => {
    const objects = await helm().template({
      image: { ...image, pullPolicy: "Always", pullSecrets: [{ name: "s" }] },
    });
    const specs = podSpecs(objects);
    expect(specs.length).toBe(5);
    for (const spec of specs) {
      expect(at(spec, "containers", 0, "image")).toBe(wanted);
      expect(at(spec, "containers", 0, "imagePullPolicy")).toBe("Always");
      expect(at(spec, "imagePullSecrets")).toEqual([{ name: "s" }]);
    }
  });

  test("replicas null is not rendered, and a number is", async () => {
    expect(at(await deployment({ replicas: 5 }), "spec", "replicas")).toBe(5);
    expect(Object.keys(at(await deployment({ replicas: null }), "spec") as JsonObject)).not.toContain(
      "replicas",
    );
  });

  test("no pod names a user or uses what OpenShift's restricted-v2 refuses", async () => {
    for (const certificates of ["Own", "CertManager", "ServiceCA", "Secret"]) {
      const specs = podSpecs(await helm().template({ configuration: { certificates } }));
      expect(specs.length).toBe(5);
      for (const spec of specs) {
        expect(at(spec, "securityContext")).toEqual({
          runAsNonRoot: true,
          seccompProfile: { type: "RuntimeDefault" },
        });
        expect(at(spec, "containers", 0, "securityContext")).toEqual({
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ["ALL"] },
        });
        // With their default modes, any user can read files and write into folders.
        for (const volume of listAt(spec, "volumes") as JsonObject[]) {
          const { name: _, ...source } = volume;
          expect(["configMap", "emptyDir", "secret"]).toContain(Object.keys(source).join());
          expect(JSON.stringify(source)).not.toMatch(/[mM]ode"/);
        }
      }
    }
  });

  test("fields of security contexts are set, and null removes them", async () => {
    const made = await deployment({
      podSecurityContext: { fsGroup: 7 },
      securityContext: { readOnlyRootFilesystem: null },
    });
    expect(at(made, ...PODS, "securityContext")).toEqual({
      runAsNonRoot: true,
      seccompProfile: { type: "RuntimeDefault" },
      fsGroup: 7,
    });
    expect(at(made, ...CONTAINER, "securityContext")).toEqual({
      allowPrivilegeEscalation: false,
      capabilities: { drop: ["ALL"] },
    });
  });

  test("scheduling, resources and names of pods follow their values", async () => {
    const toleration = { key: "dedicated", operator: "Exists" };
    const affinity = {
      nodeAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: {
          nodeSelectorTerms: [{ matchExpressions: [{ key: "a", operator: "Exists" }] }],
        },
      },
    };
    const made = await deployment({
      nodeSelector: { pool: "system" },
      tolerations: [toleration],
      affinity,
      topologySpreadConstraints: [],
      priorityClassName: "critical",
      resources: { requests: { cpu: "1" } },
      extraEnv: [{ name: "A", value: "b" }],
      extraArgs: ["--log-level=debug"],
      extraVolumes: [{ name: "v", emptyDir: {} }],
      extraVolumeMounts: [{ name: "v", mountPath: "/v" }],
      labels: { team: "a", "app.kubernetes.io/name": "other" },
      annotations: { note: "n" },
      podLabels: { pod: "p" },
      podAnnotations: { "sidecar.example.com/inject": "false" },
    });
    expect(at(made, ...PODS)).toMatchObject({
      nodeSelector: { pool: "system" },
      affinity,
      priorityClassName: "critical",
    });
    expect(at(made, ...PODS, "topologySpreadConstraints")).toBeUndefined();
    expect(listAt(made, ...PODS, "tolerations")).toHaveLength(2);
    expect(listAt(made, ...PODS, "tolerations")).toContainEqual(toleration);
    expect(at(made, ...CONTAINER, "resources")).toMatchObject({ requests: { cpu: "1" } });
    expect(listAt(made, ...CONTAINER, "env").at(-1)).toEqual({ name: "A", value: "b" });
    expect(listAt(made, ...CONTAINER, "args").at(-1)).toBe("--log-level=debug");
    expect(listAt(made, ...PODS, "volumes").at(-1)).toEqual({ name: "v", emptyDir: {} });
    expect(listAt(made, ...CONTAINER, "volumeMounts").at(-1)).toEqual({ name: "v", mountPath: "/v" });
    expect(at(made, "metadata")).toMatchObject({
      labels: { team: "a", "app.kubernetes.io/name": "usher" },
      annotations: { note: "n" },
    });
    expect(at(made, "spec", "template", "metadata")).toMatchObject({
      labels: { team: "a", pod: "p", "app.kubernetes.io/name": "usher" },
      annotations: { "sidecar.example.com/inject": "false" },
    });
    // A selector is immutable, so no value reaches it.
    expect(Object.keys(at(made, "spec", "selector", "matchLabels") as JsonObject)).toHaveLength(2);
  });

  test("annotations are set on the Service that the API server calls, and on no other object", async () => {
    const values = { webhook: { serviceAnnotations: { own: "a" } }, annotations: { note: "n" } };
    const objects = await helm().template(values);
    expect(at(named(objects, "Service"), "metadata", "annotations")).toEqual({ own: "a", note: "n" });
    expect(at(named(objects, "Service", "usher-metrics"), "metadata", "annotations")).toEqual({ note: "n" });
  });

  test("another webhook port, and the host's network with a matching rollout strategy", async () => {
    const made = await deployment({ webhook: { port: 10250 }, ops: { port: 9090 }, hostNetwork: true });
    expect(listAt(made, ...CONTAINER, "args")).toEqual(
      expect.arrayContaining(["--port=10250", "--ops-port=9090"]),
    );
    expect(listAt(made, ...CONTAINER, "ports").map((port) => at(port, "containerPort"))).toEqual([
      10250, 9090,
    ]);
    expect(at(made, ...PODS)).toMatchObject({ hostNetwork: true, dnsPolicy: "ClusterFirstWithHostNet" });
    expect(at(made, "spec", "strategy", "rollingUpdate")).toEqual({ maxUnavailable: 1, maxSurge: 0 });
  });

  test("another configuration changes the ConfigMap and the pod template", async () => {
    const configuration = { controlPlaneNamespaces: ["istio-system"] };
    const objects = await helm().template({ configuration });
    const file =
      stringAt(named(objects, "ConfigMap", "usher-configuration"), "data", "configuration.yaml") ?? "";
    expect(JSON.parse(file)).toMatchObject({
      kind: "UsherConfiguration",
      spec: { namespace: "default", ...configuration },
    });
    const note = (object: JsonObject) => at(object, "spec", "template", "metadata", "annotations");
    expect(note(named(objects, "Deployment"))).not.toEqual(note(await deployment({})));
  });

  test("policies are complete objects that are kept", async () => {
    const policy = {
      apiVersion: "kupid.gardener.cloud/v1alpha1",
      kind: "ClusterPodSchedulingPolicy",
      metadata: { name: "etcd", labels: { a: "b" } },
      spec: { podSelector: {}, nodeSelector: { "a{{ b }}": "on" } },
    };
    const made = named(await helm().template({ policies: [policy] }), "ClusterPodSchedulingPolicy", "etcd");
    expect(at(made, "spec")).toEqual(policy.spec);
    expect(at(made, "metadata")).toMatchObject({
      labels: { a: "b" },
      annotations: { "helm.sh/resource-policy": "keep" },
    });
  });

  test("crds.manage false: no permission, no hook, and the configuration says so", async () => {
    const objects = await helm().template({ crds: { manage: false } });
    const text = JSON.stringify(objects);
    expect(text).not.toContain('"customresourcedefinitions"');
    expect(text).not.toContain("--crds-only");
    expect(text).toContain('\\"manageCrds\\":false');
    expect(JSON.stringify(await helm().template({}))).toContain('"customresourcedefinitions"');
  });

  test("on control-plane nodes, all pods of usher run there, with the other values applied", async () => {
    const objects = await helm().template({
      controlPlaneNodes: true,
      nodeSelector: { pool: "system" },
      tolerations: [{ key: "dedicated", operator: "Exists" }],
    });
    const specs = objects.flatMap((object) => {
      const kind = String(object["kind"]);
      if (kind === "Pod") return [at(object, "spec")];
      return ["Deployment", "Job"].includes(kind) ? [at(object, ...PODS)] : [];
    });
    expect(specs.length).toBeGreaterThan(4);
    for (const spec of specs) {
      expect(at(spec, "nodeSelector")).toEqual({
        "node-role.kubernetes.io/control-plane": "",
        pool: "system",
      });
      const keys = listAt(spec, "tolerations").map((one) => stringAt(one, "key"));
      for (const role of ["control-plane", "master"])
        expect(keys).toContain(`node-role.kubernetes.io/${role}`);
      expect(keys).toContain("dedicated");
    }
  });

  test("excluded namespaces are those of the configuration, and upgrades clean up a disabled module", async () => {
    const objects = await helm().template({
      configuration: { excludedNamespaces: ["quiet"], modules: { "node-labels": { enabled: false } } },
    });
    const file =
      stringAt(named(objects, "ConfigMap", "usher-configuration"), "data", "configuration.yaml") ?? "";
    expect(JSON.parse(file)).toMatchObject({ spec: { excludedNamespaces: ["quiet"] } });
    const job = named(objects, "Job", "usher-cleanup");
    expect(listAt(job, ...CONTAINER, "args")[0]).toBe("cleanup");
    expect(at(job, "metadata", "annotations", "helm.sh/hook")).toMatch(/^pre-upgrade,post-upgrade\b/);
    expect(listAt(named(objects, "ClusterRole", "usher-cleanup"), "rules")).toContainEqual({
      apiGroups: [""],
      resources: ["nodes"],
      verbs: ["get", "list", "patch"],
    });
    const others = await helm().template({ configuration: { modules: { "pod-os": { enabled: false } } } });
    for (const rendered of [await helm().template({}), others])
      expect(JSON.stringify(rendered)).not.toContain("usher-cleanup");
  });

  test("without flow control no object of its group is rendered", async () => {
    const objects = await helm().template({ flowControl: { enabled: false } });
    expect(objects.filter(({ apiVersion }) => String(apiVersion).startsWith("flowcontrol"))).toEqual([]);
  });

  test.each<[JsonObject, string]>([
    [{ replica: 3 }, "replica"],
    [{ image: { tags: "x" } }, "tags"],
    [{ image: { digest: "latest" } }, "digest"],
    [{ podSecurityContext: { runAsUsr: 1 } }, "runAsUsr"],
    [{ resources: { limts: {} } }, "limts"],
    [{ tolerations: [{ kee: "a" }] }, "kee"],
    [{ configuration: { openNamespace: [] } }, "openNamespace"],
    [{ configuration: { namespace: "other" } }, "namespace"],
    [{ configuration: { modules: { placment: {} } } }, "placment"],
    [{ configuration: { modules: { placement: { repairdrift: true } } } }, "repairdrift"],
    [{ configuration: { featureGates: { Nothing: true } } }, "Nothing"],
    [{ policies: [{ apiVersion: "v1", kind: "Secret", metadata: { name: "s" } }] }, "policies"],
    [{ webhook: { port: 0 } }, "port"],
    [{ networkPolicy: { webhookCidrs: ["10.0.0.1"] } }, "webhookCidrs"],
    [{ configuration: { networkPolicy: {} } }, "networkPolicy"],
  ])("%j is rejected", async (values, name) => {
    expect(await helm().refusal(values)).toContain(name);
  });
});
