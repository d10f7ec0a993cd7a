// Calls every webhook of an installation with an object at the API server's size limit, and expects an answer: none can
// be bypassed by size.

import { buffer } from "node:stream/consumers";
import { beforeAll, expect, test } from "vitest";
import { type JsonObject, listAt, stringAt } from "../../src/core/json.ts";
import { controlPlanePolicy } from "../builders/guard.ts";
import { grantedNamespaces } from "../cluster/access/granted.ts";
import { ADMIN, type Identity } from "../cluster/access/identity.ts";
import { eventually } from "../cluster/access/wait.ts";
import { describeOwnCluster } from "../cluster/describe.ts";
import { configured, install } from "./fixtures/install.ts";
import { bindingProtobuf } from "./fixtures/protobuf.ts";
import { apps, EVERYTHING, GuardStage, SPEC, workload } from "./guarding/stage.ts";

const OPTIONS = { flags: { "kube-apiserver": ["--disable-admission-plugins=PodSecurity"] } } as const;
const ADMISSION = "/apis/admissionregistration.k8s.io/v1";
const ROLE = "node-role.kubernetes.io/control-plane";
const NAMESPACES = "/api/v1/namespaces";
const podsOf = (namespace: string) => `${NAMESPACES}/${namespace}/pods`;
const DEPLOYMENTS = apps("team-a", "deployments");
const POLICIES = "/apis/kupid.gardener.cloud/v1alpha1/clusterpodschedulingpolicies";
/** A user whose projects are limited, and one whose are not. */
const [ALICE, BOB]: readonly [Identity, Identity] = [{ user: "alice" }, { user: "idp:bob" }];
/** Fail-closed hooks have a fail-open shadow in the control plane's namespaces. No policy of placement selects `team-b`. */
const IN = ["team-a", "kube-system"] as const;

/** A request has 3 MiB at most (kube-apiserver's MaxRequestBodyBytes); this leaves room for the rest of it. */
const OWNER = "o".repeat(2.9 * 1024 * 1024);
/** The API server limits the length of most values in metadata, but not of this one. */
const fat = (name: string, more: JsonObject = {}): JsonObject => ({
  name,
  ownerReferences: [{ apiVersion: "v1", kind: "ConfigMap", uid: "u", name: OWNER }],
  ...more,
});
/** Etcd stores half as much; the review of an update has the object before and after it. */
const STORED: JsonObject = {
  containers: [{ name: "c", image: "app:1", env: [{ name: "A", value: "a".repeat(1.4 * 1024 * 1024) }] }],
};
const LINUX: JsonObject = { os: { name: "linux" }, ...EVERYTHING };
const GATED: JsonObject = { schedulerName: "none", schedulingGates: [{ name: "example.com/wait" }] };

const placing = (name: string, spec: JsonObject): JsonObject => ({
  apiVersion: "kupid.gardener.cloud/v1alpha1",
  kind: "ClusterPodSchedulingPolicy",
  metadata: { name },
  spec: {
    namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": "team-a" } },
    podSelector: {},
    nodeSelector: { pool: "a" },
    ...spec,
  },
});

/**
 * A policy of every kind, and every option that registers a hook. The administrator may do everything: a denial has no
 * protobuf.
 */
const OBJECTS: readonly JsonObject[] = [
  placing("injects", { onUpdate: "Inject" }),
  placing("refuses", { enforcement: "Refuse", failurePolicy: "Fail" }),
  placing("warns", { enforcement: "Warn" }),
  {
    apiVersion: "operator.project.openshift.io/v1",
    kind: "ProjectRequestLimit",
    metadata: { name: "cluster" },
    spec: {
      limits: [{ users: [ALICE.user], maxProjects: 5 }],
      namespaces: {},
      trustedAnnotators: [ALICE.user],
    },
  },
  {
    apiVersion: "node-labels.openshift.io/v1beta1",
    kind: "Labels",
    metadata: { name: "pools", namespace: "default" },
    spec: { nodeNamePatterns: ["w-.*"], labels: { pool: "a" } },
  },
  controlPlanePolicy({ authorizedUsers: [ADMIN.user, "team-a/default"], guardAccessOnProtectedNodes: true }),
  ...[ALICE, BOB].flatMap(({ user }) => grantedNamespaces(user, "get", "create", "patch", "update")),
];

const OVERRIDE: JsonObject = {
  apiVersion: "usher.dev/v1alpha1",
  kind: "NodeGuardOverride",
  metadata: fat("o"),
  spec: {
    group: "ControlPlane",
    mode: "Inform",
    from: "2026-01-01T00:00:00Z",
    until: "2026-01-01T01:00:00Z",
    reason: "test",
  },
};

/** The verb, the path, the object, and the user. */
type Sent = readonly ["POST" | "PATCH", string, JsonObject, Identity?];

const pod = (namespace: string, spec: JsonObject): Sent => [
  "POST",
  podsOf(namespace),
  { metadata: fat("fat"), spec: { ...SPEC, ...LINUX, nodeSelector: { pool: "a" }, ...spec } },
];
const binding = (namespace: string, node: string): Sent => [
  "POST",
  `${podsOf(namespace)}/unbound/binding`,
  { metadata: fat("unbound"), target: { kind: "Node", name: node } },
];
const relabelled = (namespace: string): Sent => [
  "PATCH",
  `${NAMESPACES}/${namespace}`,
  {
    metadata: fat(namespace, {
      labels: { "pod-security.kubernetes.io/enforce": "restricted" },
      annotations: { "openshift.io/requester": ALICE.user },
    }),
  },
  ALICE,
];

/** The reviewed Scale is short: the API server builds it from a few fields of the Deployment. */
const REQUESTS: readonly Sent[] = [
  pod("team-b", {}),
  ...IN.flatMap((namespace): Sent[] => [
    pod(namespace, {}),
    pod(namespace, { nodeName: "cp-0" }),
    pod(namespace, { nodeName: "w-1" }),
    binding(namespace, "cp-0"),
    binding(namespace, "w-1"),
    [
      "PATCH",
      `${podsOf(namespace)}/stored`,
      {
        metadata: { labels: { a: "b" } },
        spec: { nodeSelector: { "kubernetes.io/os": "linux" } },
      },
    ],
    [
      "PATCH",
      `${podsOf(namespace)}/stored/ephemeralcontainers`,
      { spec: { ephemeralContainers: [{ name: "e", image: "a" }] } },
    ],
    relabelled(namespace),
  ]),
  ["POST", NAMESPACES, { metadata: fat("projects") }, BOB],
  ["POST", DEPLOYMENTS, { ...workload("fat", LINUX), metadata: fat("fat") }],
  ["POST", "/api/v1/nodes", { metadata: fat("w-2") }],
  ["POST", NAMESPACES, { metadata: fat("project") }, ALICE],
  ["PATCH", `${DEPLOYMENTS}/stored`, { spec: { template: { spec: LINUX } } }],
  ["PATCH", `${DEPLOYMENTS}/stored/scale`, { spec: { replicas: 3 } }],
  ["PATCH", "/api/v1/nodes/cp-0", { metadata: fat("cp-0", { labels: { [ROLE]: null } }) }],
  ["POST", "/apis/usher.dev/v1alpha1/nodeguardoverrides", OVERRIDE],
  ["PATCH", `${POLICIES}/injects`, { metadata: fat("injects") }],
];
/** Custom resources have no protobuf. */
const isBuiltIn = (path: string): boolean => path.startsWith("/api/v1") || path.startsWith("/apis/apps/v1");
/** Hooks for custom resources only. */
const JSON_ONLY = /node-guard-override|policies/;
/** Called when the OS of a pod changes, which the API server refuses by itself. */
const UNREACHABLE = /pod-os-pod-updates/;

describeOwnCluster("objects at the API server's limit", OPTIONS, (cluster) => {
  const stage = new GuardStage(cluster);

  /** The registered webhooks, by type and name. CONNECT has no object: its options are in the URL. Projects are not served here. */
  const registered = async (): Promise<string[]> => {
    const found: string[] = [];
    for (const [type, path] of [
      ["admit", "mutating"],
      ["validating", "validating"],
    ])
      for (const entry of listAt(
        await cluster().call("GET", `${ADMISSION}/${path}webhookconfigurations/usher`),
        "webhooks",
      )) {
        const asked = listAt(entry, "rules").some(
          (rule) =>
            !listAt(rule, "operations").includes("CONNECT") &&
            !listAt(rule, "apiGroups").includes("project.openshift.io"),
        );
        const name = stringAt(entry, "name") ?? "";
        if (asked && !UNREACHABLE.test(name)) found.push(`${type} ${name}`);
      }
    return found;
  };

  /** How often each webhook answered, and how often it did not. */
  const calls = async () => {
    const text = String(await cluster().call("GET", "/metrics"));
    const answered = new Map<string, number>();
    const failed = new Map<string, number>();
    for (const [, what, labels = "", count] of text.matchAll(
      /^apiserver_admission_webhook_(request_total|fail_open_count)\{([^}]*)\} (\d+)/gm,
    )) {
      const label = (name: string) => new RegExp(`(?:^|,)${name}="([^"]*)"`).exec(labels)?.[1] ?? "";
      if (!label("name").endsWith("usher.dev")) continue;
      const key = `${label("type")} ${label("name")}`;
      const counts = what === "request_total" && label("code") === "200" ? answered : failed;
      counts.set(key, (counts.get(key) ?? 0) + Number(count));
    }
    return { answered, failed };
  };

  /** Sends a dry run. An object comes back as protobuf; text in it is still legible. */
  const sendOnce = async (method: string, path: string, body: JsonObject | Buffer, as: Identity = ADMIN) => {
    const headers = isBuiltIn(path) ? { accept: "application/vnd.kubernetes.protobuf" } : {};
    const response = await cluster().client.open(method, `${path}?dryRun=All`, body, as, { headers });
    const received = await buffer(response);
    const status = response.statusCode ?? 0;
    const said = `${status < 300 ? "" : received.toString("latin1").slice(-400)} ${response.headers["warning"] ?? ""}`;
    return { status, received, said };
  };

  /** Webhooks that did not answer, though the same request was sent three times: a busy machine is late once. */
  const unanswered = new Set<string>();

  const send = async (...request: Parameters<typeof sendOnce>) => {
    for (let tries = 1; ; tries++) {
      const { failed: before } = await calls();
      const answer = await sendOnce(...request);
      const { failed } = await calls();
      const late = [...failed].flatMap(([name, count]) => (count === (before.get(name) ?? 0) ? [] : [name]));
      if (late.length === 0) return answer;
      if (tries < 3) continue;
      for (const name of late) unanswered.add(name);
      return answer;
    }
  };

  beforeAll(async () => {
    await stage.prepare();
    await stage.namespaces("team-a", "team-b");
    await install(
      cluster(),
      "--replicas",
      "1",
      ...configured({
        featureGates: { OpenShiftNodeSchedulingPolicy: true },
        modules: {
          // So that fail-closed hooks are registered, too.
          "node-guard": { fallback: false },
          "pod-os": {
            podSecurity: { mode: "Replace", templates: "Deny" },
            os: { write: true, nodeMismatch: "Deny", contradictions: "Deny" },
          },
        },
      }),
    );
    for (const namespace of IN) {
      const stored = { metadata: { name: "stored" }, spec: { ...STORED, ...GATED } };
      await cluster().call("POST", podsOf(namespace), stored);
      const unbound = { metadata: { name: "unbound" }, spec: { ...SPEC, schedulerName: "none" } };
      await cluster().call("POST", podsOf(namespace), unbound);
    }
    await cluster().call("POST", DEPLOYMENTS, workload("stored", STORED, { replicas: 0 }));
    await cluster().apply(...OBJECTS);
    for (const hook of [
      "node-guard-assign-others",
      "node-guard-steering",
      "placement-closed-pods",
      "placement-enforcement-closed",
      "project-limit-namespaces",
      "pod-security",
    ])
      await eventually(`the hook ${hook}`, async () =>
        (await registered()).some((name) => name.includes(` ${hook}.`)),
      );
  }, 120_000);

  test("every webhook answers, for JSON and for protobuf", async () => {
    const start = await calls();
    const wrong: string[] = [];
    const judge = (
      [method, path]: Sent,
      form: string,
      { status, said }: Awaited<ReturnType<typeof send>>,
    ) => {
      if (status >= 300 || said.includes("USHER-E05"))
        wrong.push(`${method} ${path} as ${form}: ${status} ${said}`);
    };
    const captured = new Map<Sent, Buffer>();
    for (const request of REQUESTS) {
      const [method, path, body, as] = request;
      const answer = await send(method, path, body, as);
      judge(request, "JSON", answer);
      captured.set(request, answer.received);
    }
    const between = await calls();
    for (const request of REQUESTS) {
      const [method, path, body, as] = request;
      if (!isBuiltIn(path)) continue;
      const object = path.endsWith("/binding")
        ? bindingProtobuf("unbound", stringAt(body, "target", "name") ?? "", OWNER)
        : (captured.get(request) as Buffer);
      const verb = method === "POST" ? "POST" : "PUT";
      let answer = await send(verb, path, object, as);
      // A kubelet has written in the meantime.
      if (answer.status === 409)
        answer = await send(verb, path, (await send(method, path, body, as)).received, as);
      judge(request, "protobuf", answer);
    }
    const end = await calls();
    const silent = async (from: typeof start, to: typeof start) =>
      (await registered()).filter((name) => (to.answered.get(name) ?? 0) === (from.answered.get(name) ?? 0));
    expect({
      wrong,
      unanswered: [...unanswered],
      neverAsJson: await silent(start, between),
      neverAsProtobuf: (await silent(between, end)).filter((name) => !JSON_ONLY.test(name)),
    }).toEqual({ wrong: [], unanswered: [], neverAsJson: [], neverAsProtobuf: [] });
  }, 120_000);
});
