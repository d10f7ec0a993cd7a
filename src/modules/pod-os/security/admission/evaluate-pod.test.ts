import { describe, expect, test } from "vitest";
import { outside } from "../../../../../test/builders/outside.ts";
import { controlledBy, pod } from "../../../../../test/builders/pod.ts";
import { asked, podSecurityWith } from "../../../../../test/builders/pod-security.ts";
import { requestFor } from "../../../../../test/builders/request.ts";
import type { AdmissionRequest } from "../../../../core/decision/request.ts";
import type { Json, JsonObject } from "../../../../core/json.ts";

const RESTRICTED =
  'allowPrivilegeEscalation != false (container "c" must set securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (container "c" must set securityContext.capabilities.drop=["ALL"]), runAsNonRoot != true (pod or container "c" must set securityContext.runAsNonRoot=true), seccompProfile (pod or container "c" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")';
const C = { name: "c", image: "i" };
const PLAIN = { containers: [C] };
const HOST = { ...PLAIN, hostPID: true };
const GOOD = {
  securityContext: { runAsNonRoot: true, seccompProfile: { type: "RuntimeDefault" } },
  containers: [
    { ...C, securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ["ALL"] } } },
  ],
};

interface Case {
  readonly labels?: Readonly<Record<string, string>>;
  readonly spec?: Json;
  readonly old?: JsonObject;
  readonly change?: Partial<AdmissionRequest>;
  readonly configuration?: JsonObject;
  readonly settings?: JsonObject;
  readonly server?: string;
  readonly metadata?: JsonObject;
}

function judged({ labels = {}, spec = PLAIN, old, change = {}, configuration, ...given }: Case) {
  const config = { apiVersion: "pod-security.admission.config.k8s.io/v1", kind: "PodSecurityConfiguration" };
  const settings = {
    podSecurity: {
      mode: "Replace",
      ...(configuration === undefined ? {} : { configuration: { ...config, ...configuration } }),
      ...given.settings,
    },
  };
  const assembly = podSecurityWith({
    settings,
    labels,
    ...(given.server === undefined ? {} : { server: given.server }),
  });
  const object = pod({
    name: "p",
    spec,
    ...(given.metadata === undefined ? {} : { metadata: given.metadata }),
  });
  const update =
    old === undefined ? {} : { operation: "UPDATE" as const, oldObject: pod({ name: "p", spec: old }) };
  return asked(assembly, requestFor(object, { ...update, ...change }));
}

test("enforce refuses with upstream's text, causes, annotation, count and an event on the owner", async () => {
  const owner = controlledBy("apps/v1", "ReplicaSet", "web");
  const response = await judged({
    labels: { enforce: "restricted" },
    metadata: { ownerReferences: [owner] },
  });
  const violates = `violates PodSecurity "restricted:latest": ${RESTRICTED}`;
  expect(response).toMatchObject({
    allowed: false,
    warnings: [],
    audit: { "enforce-policy": "restricted:latest" },
    status: {
      code: 403,
      reason: "Forbidden",
      message: `pods "p" is forbidden: ${violates}`,
      details: { name: "p", kind: "pods" },
    },
    counts: ["pod_security_evaluations_total deny restricted latest enforce create pod "],
    events: [
      {
        type: "Warning",
        reason: "PodSecurityViolation",
        message: violates,
        regarding: { kind: "ReplicaSet", name: "web", namespace: "shop", uid: owner["uid"] },
      },
    ],
  });
  expect(response.status?.causes).toContainEqual({
    reason: "allowPrivilegeEscalation",
    field: "spec.containers[0].securityContext.allowPrivilegeEscalation",
    message: expect.any(String),
  });
});

test("without an owner the event is about the namespace", async () => {
  const { events } = await judged({ labels: { enforce: "baseline" }, spec: HOST });
  expect(events).toMatchObject([
    { regarding: { apiVersion: "v1", kind: "Namespace", name: "shop", namespace: "shop" } },
  ]);
});

test("audit and warn inform; equal texts occur once", async () => {
  const text = 'would violate PodSecurity "baseline:v1.30": host namespaces (hostPID=true)';
  const labels = { audit: "baseline", "audit-version": "v1.30", warn: "baseline", "warn-version": "v1.30" };
  expect(await judged({ labels, spec: HOST })).toMatchObject({
    allowed: true,
    warnings: [text],
    audit: { "enforce-policy": "privileged:latest", "audit-violations": text },
    events: [],
    counts: [
      "pod_security_evaluations_total allow privileged latest enforce create pod ",
      "pod_security_evaluations_total deny baseline v1.30 audit create pod ",
      "pod_security_evaluations_total deny baseline v1.30 warn create pod ",
    ],
  });
});

test("a refused pod is audited, and not warned about", async () => {
  const labels = { enforce: "baseline", audit: "baseline", warn: "restricted" };
  const response = await judged({ labels, spec: HOST });
  expect(response).toMatchObject({ allowed: false, warnings: [] });
  expect(response.audit).toHaveProperty("audit-violations");
});

test.each<[string, Case]>([
  ["no labels", {}],
  ["all labels privileged", { labels: { enforce: "privileged", audit: "privileged", warn: "privileged" } }],
])("%s: privileged:latest", async (_what, given) => {
  expect(await judged({ ...given, spec: HOST })).toMatchObject({
    allowed: true,
    warnings: [],
    audit: { "enforce-policy": "privileged:latest" },
    counts: ["pod_security_evaluations_total allow privileged latest enforce create pod "],
  });
});

test("the configured defaults apply without labels", async () => {
  const configuration = { defaults: { enforce: "baseline", "enforce-version": "v1.20" } };
  const { status } = await judged({ configuration, spec: HOST });
  expect(status?.message).toContain('violates PodSecurity "baseline:v1.20": host namespaces (hostPID=true)');
});

test("an empty default is privileged:latest", async () => {
  const configuration = { defaults: { enforce: "", "enforce-version": "", warn: "baseline" } };
  expect((await judged({ configuration, spec: HOST })).audit["enforce-policy"]).toBe("privileged:latest");
});

test("privileged counts as latest, for any version", async () => {
  const labels = { "enforce-version": "v1.20", warn: "baseline" };
  expect((await judged({ labels })).counts).toEqual([
    "pod_security_evaluations_total allow privileged latest enforce create pod ",
  ]);
});

test("an invalid enforce label is evaluated as restricted:latest, and noted", async () => {
  const response = await judged({ labels: { enforce: "foo" } });
  expect(response.status?.message).toContain('violates PodSecurity "restricted:latest"');
  expect(response.audit["error"]).toBe(
    'Failed to parse policy: metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: "foo": must be one of privileged, baseline, restricted',
  );
  expect(response.counts).toContain("pod_security_errors_total false create pod ");
});

describe("exemptions switch all modes off", () => {
  const labels = { enforce: "restricted", audit: "restricted", warn: "restricted" };
  test.each<[string, JsonObject, Json]>([
    ["namespace", { namespaces: ["shop"] }, HOST],
    ["user", { usernames: ["jane"] }, HOST],
    ["runtimeClass", { runtimeClasses: ["kata"] }, { ...HOST, runtimeClassName: "kata" }],
  ])("by %s", async (exempt, exemptions, spec) => {
    const response = await judged({ labels, configuration: { exemptions }, spec });
    expect(response).toMatchObject({
      allowed: true,
      warnings: [],
      audit: { exempt },
      counts: ["pod_security_exemptions_total create pod "],
    });
  });
});

describe("updates", () => {
  const labels = { enforce: "baseline" };
  const image = { ...HOST, containers: [{ ...C, image: "j" }] };
  const debug = (name: string) => ({ name, image: "d" });
  const sub = { subResource: "ephemeralcontainers" };
  test.each<[string, Json, JsonObject, Partial<AdmissionRequest>, boolean]>([
    ["labels and tolerations", { ...HOST, tolerations: [{ operator: "Exists" }] }, HOST, {}, true],
    ["an image", image, HOST, {}, false],
    [
      "an image of an init container",
      { ...HOST, initContainers: [debug("a")] },
      { ...HOST, initContainers: [C] },
      {},
      false,
    ],
    ["another number of containers", { ...HOST, containers: [C, debug("x")] }, HOST, {}, false],
    ["an ephemeral container", { ...HOST, ephemeralContainers: [debug("x")] }, HOST, sub, false],
    [
      "ephemeral containers in another order",
      { ...HOST, ephemeralContainers: [debug("y"), debug("x")] },
      { ...HOST, ephemeralContainers: [debug("x"), debug("y")] },
      sub,
      true,
    ],
    ["an ignored subresource", image, HOST, { subResource: "status" }, true],
  ])("%s", async (_what, spec, old, change, allowed) => {
    expect((await judged({ labels, spec, old, change })).allowed).toBe(allowed);
  });

  describe("of ephemeral containers, evaluating only the added part", () => {
    const settings = { ephemeralContainers: "Added" };
    const privileged = { ...debug("x"), securityContext: { privileged: true } };
    const old = {
      ...HOST,
      volumes: [{ name: "v", hostPath: { path: "/" } }],
      ephemeralContainers: [privileged],
    };
    test("existing violations do not count", async () => {
      const spec = { ...old, ephemeralContainers: [debug("y"), privileged] };
      expect((await judged({ labels, settings, spec, old, change: sub })).allowed).toBe(true);
      expect((await judged({ labels, spec, old, change: sub })).allowed).toBe(false);
    });
    test("added ones do", async () => {
      const spec = { ...old, ephemeralContainers: [{ ...privileged, name: "y" }, privileged] };
      const { status } = await judged({ labels, settings, spec, old, change: sub });
      expect(status?.message).toBe(
        'pods "p" is forbidden: violates PodSecurity "baseline:latest": privileged (container "y" must not set securityContext.privileged=true)',
      );
    });
    test.each<[string, string, JsonObject, JsonObject, string]>([
      [
        "HostProcess",
        "baseline",
        { windowsOptions: { hostProcess: true } },
        {},
        'hostProcess (container "y" must not set securityContext.windowsOptions.hostProcess=true)',
      ],
      [
        "a user",
        "restricted",
        { ...GOOD.securityContext, runAsUser: 0 },
        {},
        'runAsUser=0 (container "y" must not set runAsUser=0)',
      ],
      ["its own user", "restricted", { ...GOOD.securityContext, runAsUser: 0 }, { runAsUser: 1 }, ""],
      [
        "a profile",
        "restricted",
        { runAsNonRoot: true, seccompProfile: { type: "Unconfined" } },
        {},
        'seccompProfile (container "y" must not set securityContext.seccompProfile.type to "Unconfined")',
      ],
      ["a good setting of the pod", "restricted", GOOD.securityContext, {}, ""],
      ["sysctls are the pod's", "baseline", { sysctls: [{ name: "kernel.msgmax", value: "1" }] }, {}, ""],
    ])("an added container inherits from the pod: %s", async (_what, level, securityContext, own, detail) => {
      const before = { ...HOST, securityContext };
      const y = {
        ...debug("y"),
        securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ["ALL"] }, ...own },
      };
      const spec = { ...before, ephemeralContainers: [y] };
      const { status } = await judged({
        labels: { enforce: level },
        settings,
        spec,
        old: before,
        change: sub,
        metadata: { annotations: { "container.apparmor.security.beta.kubernetes.io/c": "unconfined" } },
      });
      expect(status?.message ?? "").toBe(
        detail === "" ? "" : `pods "p" is forbidden: violates PodSecurity "${level}:latest": ${detail}`,
      );
    });
    test("a changed image evaluates the whole pod", async () => {
      expect((await judged({ labels, settings, spec: image, old: HOST })).allowed).toBe(false);
    });
  });
});

test("latest is the API server's minor", async () => {
  const sysctls = [{ name: "net.ipv4.tcp_slow_start_after_idle", value: "0" }];
  const spec = { ...PLAIN, securityContext: { sysctls } };
  const labels = { enforce: "baseline" };
  expect((await judged({ labels, spec, server: "v1.36.2" })).allowed).toBe(false);
  expect((await judged({ labels, spec, server: "v1.37.1" })).allowed).toBe(true);
  expect((await judged({ labels, spec })).allowed).toBe(true);
});

test("versions beyond the API server's count as future", async () => {
  const labels = { enforce: "baseline", "enforce-version": "v1.38" };
  const { counts } = await judged({ labels, server: "v1.37.1" });
  expect(counts).toEqual(["pod_security_evaluations_total allow baseline future enforce create pod "]);
});

test("windowsChecks require a non-administrator user, for explicit Windows pods at restricted", async () => {
  const labels = { enforce: "restricted" };
  const spec = (user?: string) => ({
    ...PLAIN,
    os: { name: "windows" },
    securityContext: {
      runAsNonRoot: true,
      ...(user === undefined ? {} : { windowsOptions: { runAsUserName: user } }),
    },
  });
  const settings = { windowsChecks: true };
  const textOf = async (given: Case) => (await judged({ labels, ...given })).status?.message ?? "";
  expect(await textOf({ spec: spec() })).toBe("");
  expect(await textOf({ spec: spec(), settings })).toContain(
    'no Windows user (container "c" must set securityContext.windowsOptions.runAsUserName)',
  );
  expect(await textOf({ spec: spec("containerADMINISTRATOR"), settings })).toContain(
    "ContainerAdministrator (container",
  );
  expect(await textOf({ spec: spec("ContainerUser"), settings })).toBe("");
  expect(await textOf({ spec: GOOD, settings })).toBe("");
});

describe("a request that can't be evaluated is refused", () => {
  test("a namespace that can't be read", async () => {
    const assembly = podSecurityWith({ settings: { podSecurity: { mode: "Replace" } } });
    const request = requestFor(pod({ namespace: "away", name: "p" }));
    const world = outside({ fact: () => ({ failed: "no route" }) });
    const response = await asked(assembly, request, { world });
    expect(world.fetches).toEqual([[{ get: { resource: "namespaces", name: "away" }, live: true }]]);
    expect(response).toMatchObject({
      allowed: false,
      status: { code: 500, message: 'failed to lookup namespace "away"' },
      counts: ["pod_security_errors_total true create pod "],
    });
  });

  test("a new namespace is read live", async () => {
    const assembly = podSecurityWith({ settings: { podSecurity: { mode: "Replace" } } });
    const found = { metadata: { name: "new", labels: { "pod-security.kubernetes.io/enforce": "baseline" } } };
    const world = outside({ fact: () => ({ found, complete: true }) });
    const request = requestFor(pod({ namespace: "new", name: "p", spec: HOST }));
    expect((await asked(assembly, request, { world })).allowed).toBe(false);
  });

  test.each<[string, Json]>([
    ["containers that are not a list", { containers: "x" }],
    ["containers that are null", { containers: [null] }],
    ["no spec", "x"],
  ])("%s", async (_what, spec) => {
    expect(await judged({ labels: { enforce: "baseline" }, spec })).toMatchObject({
      allowed: false,
      status: { code: 400, message: "failed to decode pod" },
    });
  });
});

test("evaluates ten thousand containers and keys such as __proto__", async () => {
  const spec = JSON.parse(
    '{"containers":[{"name":"__proto__","securityContext":{"__proto__":{"privileged":true}}}]}',
  );
  expect((await judged({ labels: { enforce: "baseline" }, spec })).allowed).toBe(true);
  const containers = Array.from({ length: 10_000 }, (_, i) => ({
    name: `c${i}`,
    securityContext: { privileged: true },
  }));
  const { allowed, status } = await judged({ labels: { enforce: "baseline" }, spec: { containers } });
  expect(allowed).toBe(false);
  expect(status?.causes.length).toBeLessThanOrEqual(64);
});
