// Pod Security by usher on an API server without its own plugin, templates that are denied, and the gate IdentifyPodOS.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { at, type Json, type JsonObject, listAt, stringAt } from "../../src/core/json.ts";
import { podOS } from "../../src/modules/pod-os/index.ts";
import type { Reply } from "../cluster/access/client.ts";
import { eventually } from "../cluster/access/wait.ts";
import { createNamespace, describeOwnCluster } from "../cluster/describe.ts";
import { warningsOf } from "./fixtures/placement-stage.ts";
import { type PodOSUsher, podOSUsher } from "./fixtures/pod-os-usher.ts";
import { installKinds } from "./live-source.ts";

const PREFIX = "pod-security.kubernetes.io";
const CONFIGURATION = {
  apiVersion: "pod-security.admission.config.k8s.io/v1",
  kind: "PodSecurityConfiguration",
  exemptions: { usernames: ["exempt"], namespaces: ["exempt"] },
};
const C = { name: "c", image: "any" };
const PLAIN = { containers: [C] };
const HOST = { ...PLAIN, hostPID: true };
const WINDOWS = { ...PLAIN, os: { name: "windows" }, nodeSelector: { "kubernetes.io/os": "windows" } };
const HOST_DETAIL = 'PodSecurity "baseline:latest": host namespaces (hostPID=true)';
const IMAGE = { op: "replace", path: "/spec/containers/0/image", value: "other" };
const EXEMPT = { user: "exempt", groups: ["system:masters"] };

const OPTIONS = {
  without: ["kube-scheduler", "kwok"],
  flags: { "kube-apiserver": ["--disable-admission-plugins=PodSecurity"] },
} as const;

describeOwnCluster("an API server without the plugin PodSecurity", OPTIONS, (cluster) => {
  const labels = (modes: Readonly<Record<string, string>>) =>
    Object.fromEntries(Object.entries(modes).map(([key, value]) => [`${PREFIX}/${key}`, value]));
  const namespace = (modes: Readonly<Record<string, string>> = {}) =>
    createNamespace(cluster(), labels(modes));
  const relabel = (name: string, modes: Readonly<Record<string, string>>) =>
    cluster().request("PATCH", `/api/v1/namespaces/${name}`, { metadata: { labels: labels(modes) } });
  const pods = (name: string) => `/api/v1/namespaces/${name}/pods`;
  const create = (name: string, spec: JsonObject, pod = "p", query = "?dryRun=All", as?: typeof EXEMPT) =>
    cluster().request("POST", `${pods(name)}${query}`, { metadata: { name: pod }, spec }, as);
  const deployments = (name: string) => `/apis/apps/v1/namespaces/${name}/deployments`;
  const deployment = (spec: JsonObject, replicas = 0, more: JsonObject = {}): JsonObject => ({
    metadata: { name: "d", ...more },
    spec: {
      replicas,
      selector: { matchLabels: { app: "d" } },
      template: { metadata: { labels: { app: "d" } }, spec },
    },
  });
  const answer = ({ status, body }: Reply) => `${status} ${stringAt(body, "message") ?? ""}`;
  /** By the suffix of an annotation in the audit log. */
  const audited = (name: string, word: string): string[] =>
    cluster()
      .auditLog()
      .filter(({ objectRef }) => objectRef?.namespace === name)
      .flatMap(({ annotations = {} }) => Object.entries(annotations))
      .filter(([key]) => key.endsWith(`/${word}`))
      .map(([, value]) => value);

  beforeAll(async () => {
    await installKinds(cluster(), [podOS]);
  });

  describe("Replace", () => {
    let usher: PodOSUsher;
    let baseline = "";

    beforeAll(async () => {
      baseline = await namespace({ enforce: "baseline" });
      usher = await podOSUsher(cluster(), {
        podSecurity: { mode: "Replace", configuration: CONFIGURATION },
      });
      await eventually("the webhook", async () => (await create(baseline, HOST)).status === 403);
    });
    afterAll(() => usher?.stop());

    test("enforce refuses pods with upstream's text, and counts", async () => {
      const restricted = await namespace({ enforce: "restricted" });
      expect(answer(await create(baseline, HOST))).toBe(
        `403 admission webhook "pod-security.usher.dev" denied the request: pods "p" is forbidden: violates ${HOST_DETAIL}`,
      );
      expect(answer(await create(restricted, PLAIN))).toContain(
        'violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false (container "c" must set securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (',
      );
      expect((await create(baseline, PLAIN)).status).toBe(201);
      expect((await create(restricted, { ...WINDOWS, securityContext: { runAsNonRoot: true } })).status).toBe(
        201,
      );
      const text = await usher.metrics();
      expect(text).toContain(
        'pod_security_evaluations_total{decision="allow",policy_level="privileged",policy_version="latest",mode="enforce",request_operation="create",resource="pod",subresource=""} ',
      );
      expect(text).toContain(
        'pod_security_exemptions_total{request_operation="update",resource="controller",subresource=""} 0',
      );
    });

    test("warn and audit only inform; exempt requests get neither", async () => {
      const name = await namespace({ warn: "baseline", audit: "baseline" });
      const warned = await create(name, HOST);
      expect([warned.status, warningsOf(warned)]).toEqual([
        201,
        expect.stringContaining(`would violate ${HOST_DETAIL}`),
      ]);
      const made = await cluster().request("POST", `${deployments(name)}?dryRun=All`, deployment(HOST));
      expect([made.status, warningsOf(made)]).toEqual([
        201,
        expect.stringContaining(`would violate ${HOST_DETAIL}`),
      ]);
      const exempt = await create(baseline, HOST, "p", "?dryRun=All", EXEMPT);
      expect([exempt.status, warningsOf(exempt)]).toEqual([201, ""]);
      await eventually("the audit log", async () => audited(name, "audit-violations").length === 2);
      expect(audited(name, "audit-violations")[0]).toBe(`would violate ${HOST_DETAIL}`);
      expect(audited(name, "enforce-policy")).toEqual(["privileged:latest"]);
      expect(audited(baseline, "exempt")).toContain("user");
    });

    test("for stored pods only significant updates and ephemeral containers are evaluated", async () => {
      const name = await namespace();
      await cluster().call("POST", pods(name), { metadata: { name: "old" }, spec: HOST });
      const preview = await relabel(name, { enforce: "baseline" });
      expect([preview.status, warningsOf(preview)]).toEqual([
        200,
        expect.stringMatching(
          /existing pods in namespace "test-\w+" violate the new PodSecurity enforce level "baseline:latest".*old: host namespaces/s,
        ),
      ]);
      await eventually("the label", async () => (await create(name, HOST)).status === 403);
      const patch = (body: JsonObject | readonly Json[], sub = "") =>
        cluster().request("PATCH", `${pods(name)}/old${sub}`, body);
      expect((await patch({ metadata: { labels: { a: "b" } } })).status).toBe(200);
      expect((await patch([IMAGE])).status).toBe(403);
      const added = { spec: { ephemeralContainers: [{ name: "e", image: "any" }] } };
      expect(answer(await patch(added, "/ephemeralcontainers"))).toContain(`violates ${HOST_DETAIL}`);
    });

    test("labels of namespaces are validated, and those of the control plane's namespaces apply", async () => {
      const bad = await cluster().request("POST", "/api/v1/namespaces", {
        metadata: { name: "bad", labels: labels({ enforce: "foo" }) },
      });
      expect(answer(bad)).toContain(
        `422 admission webhook "pod-security-namespaces.usher.dev" denied the request: Namespace "bad" is invalid: metadata.labels[${PREFIX}/enforce]: Invalid value: "foo": must be one of privileged, baseline, restricted`,
      );
      const exempt = await cluster().request("POST", "/api/v1/namespaces?dryRun=All", {
        metadata: { name: "exempt", labels: labels({ enforce: "baseline" }) },
      });
      expect(warningsOf(exempt)).toContain(
        'namespace "exempt" is exempt from Pod Security, and the policy (enforce=baseline:latest) will be ignored',
      );
      expect((await relabel("kube-system", { enforce: "baseline" })).status).toBe(200);
      await eventually("kube-system", async () => (await create("kube-system", HOST)).status === 403);
      expect((await relabel("kube-public", { enforce: "nothing" })).status).toBe(422);
    });

    test("a pod that mentions an OS is evaluated and counted", async () => {
      const name = await namespace();
      const made = await create(name, { ...PLAIN, os: { name: "windows" } }, "win", "");
      expect([made.status, warningsOf(made)]).toEqual([201, expect.stringContaining("USHER-O03")]);
      await create(name, { ...PLAIN, nodeSelector: { "beta.kubernetes.io/os": "linux" } }, "lin", "");
      await eventually("the counts", async () => {
        const text = await usher.metrics();
        return (
          text.includes('usher_pod_os_pods{os="windows",source="explicit"} 1') &&
          text.includes('usher_pod_os_pods{os="linux",source="nodeSelector"} 1')
        );
      });
    });

    test("a refused pod of a Deployment raises an event on its ReplicaSet", async () => {
      const made = await cluster().request("POST", deployments(baseline), deployment(HOST, 1));
      expect([made.status, warningsOf(made)]).toEqual([
        201,
        expect.stringContaining(`would violate ${HOST_DETAIL}`),
      ]);
      const event = await eventually("the event", async () =>
        usher.events.find(({ regarding }) => regarding.kind === "ReplicaSet"),
      );
      expect(event).toMatchObject({
        reason: "PodSecurityViolation",
        message: `violates ${HOST_DETAIL}`,
        regarding: { apiVersion: "apps/v1", kind: "ReplicaSet", namespace: baseline },
      });
    });

    test("an exception waives its check, and is audited", async () => {
      const name = await namespace({ enforce: "baseline" });
      const soon = new Date(Date.now() + 3_600_000).toISOString();
      await cluster().call("POST", "/apis/usher.dev/v1alpha1/podsecurityexceptions", {
        apiVersion: "usher.dev/v1alpha1",
        kind: "PodSecurityException",
        metadata: { name: "host" },
        spec: { checks: ["hostNamespaces"], namespaces: [name], expires: soon, owner: "tests" },
      });
      await eventually("the exception", async () => (await create(name, HOST)).status === 201);
      expect((await create(baseline, HOST)).status).toBe(403);
      await eventually("the audit log", async () =>
        audited(name, "exception").includes("host: hostNamespaces"),
      );
    });
  });

  test("with usher down, requests that it would evaluate are refused, and no other request is delayed", async () => {
    const name = await namespace();
    const finalizers = ["example.com/hold"];
    await cluster().call("POST", pods(name), { metadata: { name: "old", finalizers }, spec: PLAIN });
    const usher = await podOSUsher(cluster(), { podSecurity: { mode: "Replace" } });
    try {
      await relabel(name, { enforce: "baseline" });
      await eventually("the webhook", async () => (await create(name, HOST)).status === 403);
      await usher.leave();
      expect(answer(await create(name, PLAIN))).toMatch(/^500 .*failed calling webhook "pod-security/);
      expect((await relabel(name, { enforce: "privileged" })).status).toBe(500);
      const pod = `${pods(name)}/old`;
      expect((await cluster().request("PATCH", pod, [{ ...IMAGE }])).status).toBe(500);
      const sub = { spec: { ephemeralContainers: [{ name: "e", image: "any" }] } };
      expect((await cluster().request("PATCH", `${pod}/ephemeralcontainers`, sub)).status).toBe(500);
      await cluster().call("PATCH", pod, { metadata: { labels: { a: "b" } } });
      await cluster().call("PATCH", pod, [
        { op: "add", path: "/spec/tolerations/-", value: { operator: "Exists" } },
      ]);
      await cluster().call("PATCH", pod, { metadata: { finalizers: null } });
      await cluster().call("PATCH", `/api/v1/namespaces/${name}`, { metadata: { annotations: { a: "b" } } });
      await cluster().call("POST", `${deployments(name)}?dryRun=All`, deployment(HOST));
      expect((await create("kube-system", PLAIN)).status).toBe(201);
      expect((await relabel("kube-system", { enforce: "privileged" })).status).toBe(200);
      const path = `/api/v1/namespaces/${name}`;
      await cluster().call("DELETE", path);
      await eventually(
        "the namespace gone",
        async () => (await cluster().request("GET", path)).status === 404,
      );
    } finally {
      await usher.stop();
    }
  });

  test("templates: Deny refuses changes of a template, and no other update of a stored object", async () => {
    const name = await namespace({ enforce: "baseline" });
    const path = `${deployments(name)}/d`;
    const finalizers = ["example.com/hold"];
    await cluster().call("POST", deployments(name), deployment(HOST, 0, { finalizers }));
    const usher = await podOSUsher(cluster(), { podSecurity: { mode: "Replace", templates: "Deny" } });
    try {
      const other = deployment(HOST, 0, { name: "e" });
      const post = () => cluster().request("POST", `${deployments(name)}?dryRun=All`, other);
      await eventually("the webhook", async () => (await post()).status === 403);
      expect(answer(await post())).toContain(`deployments.apps "e" is forbidden: violates ${HOST_DETAIL}`);
      const status = await cluster().kubectl(["-n", name, "rollout", "status", "deployment/d"]);
      expect(status).toMatchObject({ code: 0 });
      const annotated = await cluster().kubectl(["-n", name, "annotate", "deployment/d", "a=b"]);
      expect(annotated).toMatchObject({ code: 0 });
      const changed = await cluster().request("PATCH", path, {
        spec: { template: { spec: { hostIPC: true } } },
      });
      expect(changed.status).toBe(403);
      await cluster().call("PATCH", `${path}/scale`, { spec: { replicas: 0 } });
      await cluster().call("DELETE", path);
      await cluster().call("PATCH", path, { metadata: { finalizers: null } });
      await eventually("it gone", async () => (await cluster().request("GET", path)).status === 404);
    } finally {
      await usher.stop();
    }
  });

  test("gate off, on, off and on: stored objects keep their OS, and nothing rolls out", async () => {
    const name = await namespace();
    await cluster().call("POST", pods(name), { metadata: { name: "stored" }, spec: WINDOWS });
    await cluster().call("POST", deployments(name), deployment(WINDOWS, 1));
    const sets = async () =>
      listAt(await cluster().call("GET", `/apis/apps/v1/namespaces/${name}/replicasets`), "items");
    await eventually("the ReplicaSet", async () => (await sets()).length === 1);
    const isMine = (set: Json) =>
      listAt(set, "metadata", "ownerReferences").some((owner) => stringAt(owner, "name") === "d");
    const osOf = (object: Json | undefined) => at(object, "spec", "os", "name");
    const stored = async () => [
      osOf(await cluster().call("GET", `${pods(name)}/stored`)),
      osOf(at(await cluster().call("GET", `${deployments(name)}/d`), "spec", "template")),
    ];
    for (const turn of [0, 1]) {
      const usher = await podOSUsher(cluster(), {}, false);
      await eventually(
        "the gate to be off",
        async () => osOf((await create(name, WINDOWS)).body) === undefined,
      );
      const made = await cluster().call(
        "POST",
        deployments(name),
        deployment(WINDOWS, 0, { name: `off-${turn}` }),
      );
      expect(osOf(at(made, "spec", "template"))).toBeUndefined();
      for (const path of [`${pods(name)}/stored`, `${deployments(name)}/d`])
        await cluster().call("PATCH", path, { metadata: { labels: { turn: String(turn) } } });
      expect(await stored()).toEqual(["windows", "windows"]);
      if (turn === 0) {
        const path = `/spec/template${IMAGE.path}`;
        await cluster().call("PATCH", `${deployments(name)}/d`, [{ ...IMAGE, path }]);
        await eventually("the rollout", async () => (await sets()).filter(isMine).length === 2);
      }
      await usher.stop();
      await eventually(
        "the gate to be on",
        async () => osOf((await create(name, WINDOWS)).body) === "windows",
      );
      await cluster().call("PATCH", `${deployments(name)}/d`, { metadata: { labels: { on: String(turn) } } });
      expect(await stored()).toEqual(["windows", "windows"]);
    }
    // One at first, and one of the new image, however often the gate was switched.
    expect((await sets()).filter(isMine)).toHaveLength(2);
  });

  test("custom webhooks and policies can select by spec.os", async () => {
    const name = await namespace();
    const api = "admissionregistration.k8s.io/v1";
    const namespaceSelector = { matchLabels: { "kubernetes.io/metadata.name": name } };
    const rule = { apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["pods"] };
    await cluster().apply(
      {
        apiVersion: api,
        kind: "ValidatingAdmissionPolicy",
        metadata: { name: "no-linux" },
        spec: {
          matchConstraints: { resourceRules: [rule], namespaceSelector },
          matchConditions: [
            { name: "linux", expression: "has(object.spec.os) && object.spec.os.name == 'linux'" },
          ],
          validations: [{ expression: "false", message: "no Linux here" }],
        },
      },
      {
        apiVersion: api,
        kind: "ValidatingAdmissionPolicyBinding",
        metadata: { name: "no-linux" },
        spec: { policyName: "no-linux", validationActions: ["Deny"] },
      },
      {
        apiVersion: api,
        kind: "ValidatingWebhookConfiguration",
        metadata: { name: "own" },
        webhooks: [
          {
            name: "own.example.com",
            admissionReviewVersions: ["v1"],
            sideEffects: "None",
            failurePolicy: "Fail",
            timeoutSeconds: 1,
            clientConfig: { url: "https://127.0.0.1:1" },
            rules: [rule],
            namespaceSelector,
            matchConditions: [
              { name: "windows", expression: "has(object.spec.os) && object.spec.os.name == 'windows'" },
            ],
          },
        ],
      },
    );
    const linux = () => create(name, { ...PLAIN, os: { name: "linux" } });
    await eventually("the policy", async () => answer(await linux()).includes("no Linux here"));
    await eventually("the webhook", async () =>
      answer(await create(name, WINDOWS)).includes('failed calling webhook "own.example.com"'),
    );
    expect((await create(name, PLAIN)).status).toBe(201);
  });
});
