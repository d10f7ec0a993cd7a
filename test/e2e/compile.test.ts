// Compiled policies on a real API server: it must make of every pod what usher makes of it, but for provenance.
import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import fc from "fast-check";
import { applyPatch } from "rfc6902";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { AdmissionRequest } from "../../src/core/decision/request.ts";
import { evaluate } from "../../src/core/evaluate/evaluate.ts";
import { responseOf } from "../../src/core/evaluate/response.ts";
import { DEFAULT_INSTALLATION } from "../../src/core/installation/installation.ts";
import { at, canonical, equal, type Json, type JsonObject, listAt, stringAt } from "../../src/core/json.ts";
import { nameOf } from "../../src/core/kubernetes/object.ts";
import type { Assembly } from "../../src/core/module/assembly.ts";
import { type CompiledPolicy, compileResult } from "../../src/core/module/compile.ts";
import type { Module } from "../../src/core/module/module.ts";
import type { Problem } from "../../src/core/policy/problem.ts";
import { PROVENANCE } from "../../src/core/provenance/annotation.ts";
import { nodeLabels } from "../../src/modules/node-labels/index.ts";
import { RECORD } from "../../src/modules/node-labels/ledger/record.ts";
import { compileCriteria } from "../../src/modules/placement/criteria/cel.ts";
import { parseCriteria } from "../../src/modules/placement/criteria/criteria.ts";
import { placement } from "../../src/modules/placement/index.ts";
import { podOS } from "../../src/modules/pod-os/index.ts";
import { CHECKS } from "../../src/modules/pod-os/security/checks.ts";
import { assemblyOf, callOf } from "../builders/evaluation.ts";
import { outside } from "../builders/outside.ts";
import { requestFor } from "../builders/request.ts";
import type { Identity } from "../cluster/access/identity.ts";
import { eventually } from "../cluster/access/wait.ts";
import { createNamespace, describeCluster, LONG } from "../cluster/describe.ts";
import { CLASSES, criteria, criteriaFromNamespace, NAMESPACES, podSpec } from "./fixtures/generated-pods.ts";
import { SPEC } from "./fixtures/placement-stage.ts";
import { comparable } from "./fixtures/same-object.ts";
import { type AskedPod, MIXED, podsAt } from "./pod-security/pods.ts";

const ID = randomBytes(4).toString("hex");
const LABEL = `compiled-${ID}`;
const ADMISSION = "/apis/admissionregistration.k8s.io/v1";
const AT_ONCE = 20;
const [POLICIES, PODS] = LONG ? [200, 10_000] : [40, 300];
/** Pairs of policies, each with pods that both select. */
const [PAIRS, PODS_OF_PAIR] = LONG ? [60, 10] : [15, 4];
const SEED = 20_261_118;

/** Usher's policies refuse what an invalid one may select if it fails closed; such a policy is not compiled. */
const isValid = (spec: JsonObject) => {
  const problems: Problem[] = [];
  parseCriteria(spec, problems);
  return problems.every(({ severity }) => severity !== "error");
};
const valid = criteria.filter(isValid);

/** Each with pods of its own, so that no order between policies counts. Every third takes values from the namespace. */
const SPECS = fc
  .sample(fc.tuple(valid, criteriaFromNamespace.filter(isValid)), { numRuns: POLICIES, seed: SEED })
  .map(([plain, fromNamespace], i) => (i % 3 === 0 ? fromNamespace : plain));
const PAIRED = fc.sample(fc.tuple(valid, valid), { numRuns: PAIRS, seed: SEED });
const WRITTEN = fc.sample(podSpec, { numRuns: PODS, seed: SEED });

function policyOf(name: string, spec: JsonObject): JsonObject {
  return {
    apiVersion: "kupid.gardener.cloud/v1alpha1",
    kind: "ClusterPodSchedulingPolicy",
    metadata: { name },
    spec: {
      namespaceSelector: { matchLabels: { [LABEL]: "yes" } },
      podSelector: { matchLabels: { [LABEL]: name } },
      targets: "Pods",
      ...spec,
    },
  };
}

/** What a module compiles. */
function rowsOf(module: Module, assembly: Assembly, now = 0): readonly CompiledPolicy[] {
  const { view, installation, gates } = assembly;
  const policies = [...assembly.policies(module.name)].flatMap(({ policy }) => policy ?? []);
  return module.compile?.({ policies, view, installation, gates, now }) ?? [];
}

/** The path that each object is posted to. */
function pathsOf(rows: readonly CompiledPolicy[]) {
  return rows
    .flatMap(({ objects }) => objects)
    .map((object) => {
      const kind = stringAt(object, "kind")?.toLowerCase() ?? "";
      return { object, path: `${ADMISSION}/${kind.endsWith("y") ? `${kind.slice(0, -1)}ies` : `${kind}s`}` };
    });
}

/** The object after usher's webhook; undefined if it refuses the object. */
async function byUsher(assembly: Assembly, request: AdmissionRequest): Promise<JsonObject | undefined> {
  // An evaluation edits its object.
  const result = structuredClone(request.object) as JsonObject;
  const world = outside({ fact: () => ({ found: { metadata: {} }, complete: true }) });
  const { allowed, patch } = responseOf(await evaluate(callOf(assembly, request), world));
  if (!allowed) return undefined;
  const problems = applyPatch(result, (patch ?? []) as unknown as Parameters<typeof applyPatch>[1]);
  expect(problems.filter((problem) => problem !== null)).toEqual([]);
  const validated = { ...request, object: structuredClone(result) };
  const { denials } = await evaluate(callOf(assembly, validated, { phase: "validate" }), world);
  return denials.length > 0 ? undefined : result;
}

/** Without usher's own annotations, and with keys in one order. */
function withoutNotes(object: Json): string {
  const text = JSON.stringify(comparable(object), (key, value) => {
    if (NOTES.has(key)) return undefined;
    return key === "annotations" && Object.keys(value).every((one) => NOTES.has(one)) ? undefined : value;
  });
  return canonical(JSON.parse(text) as Json);
}

/** The same, with elements of lists in one order: several policies add to them in any order. */
function inAnyOrder(object: Json): string {
  const sorted = (value: Json): Json => {
    if (Array.isArray(value)) return value.map(sorted).sort((a, b) => (canonical(a) < canonical(b) ? -1 : 1));
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, sorted(one ?? null)]));
  };
  return typeof object === "string" ? object : canonical(sorted(JSON.parse(withoutNotes(object)) as Json));
}

const NOTES = new Set([PROVENANCE, RECORD]);

describeCluster("compiled placement on an API server", (cluster) => {
  const policies = [
    ...SPECS.map((spec, i) => policyOf(`${ID}-${i}`, spec)),
    ...PAIRED.flatMap((pair, i) =>
      pair.map((spec, side) => ({
        ...policyOf(`${ID}-pair-${i}`, spec),
        metadata: { name: `${ID}-pair-${i}-${side}` },
      })),
    ),
    policyOf(`${ID}-barrier`, { nodeSelector: { barrier: "reached" } }),
  ];
  const assembly = assemblyOf(
    [placement],
    [
      ...policies.map((object) => ({
        resource: "clusterpodschedulingpolicies.kupid.gardener.cloud",
        namespace: "",
        name: nameOf(object),
        object,
      })),
    ],
  );
  const rows = rowsOf(placement, assembly);
  const paths = pathsOf(rows);
  /** Policies select pods in all of these, and take other values from each. */
  let placed: readonly string[] = [];
  let plain = "";

  test("has objects for every generated policy with criteria", () => {
    const left = rows.filter(({ objects }) => objects.length === 0).flatMap(({ leftOut }) => leftOut);
    expect(left.filter(({ what }) => what !== "criteria")).toEqual([]);
    expect(left.length).toBeLessThan(policies.length / 5);
  });

  const create = (namespace: string, labels: JsonObject, spec: JsonObject) =>
    cluster().request("POST", `/api/v1/namespaces/${namespace}/pods?dryRun=All`, {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: "generated", labels },
      spec: { ...spec, ...SPEC },
    });

  beforeAll(async () => {
    for (const object of CLASSES) {
      const group = `/apis/${stringAt(object, "apiVersion")}`;
      const resource = object["kind"] === "PriorityClass" ? "priorityclasses" : "runtimeclasses";
      await cluster().request("POST", `${group}/${resource}`, object);
    }
    placed = await Promise.all(
      NAMESPACES.map(async ({ labels, annotations }) => {
        const name = await createNamespace(cluster(), { [LABEL]: "yes", ...(labels as object) });
        const path = `/api/v1/namespaces/${name}`;
        const object = await cluster().call("PATCH", path, { metadata: { annotations } });
        assembly.apply([{ resource: "namespaces", namespace: "", name, object: object as JsonObject }]);
        return name;
      }),
    );
    plain = await createNamespace(cluster());
    // The barrier is last: policies and bindings before it are in force with it.
    const barrier = paths.filter(({ object }) => nameOf(object).endsWith("-barrier"));
    const others = paths.filter((one) => !barrier.includes(one));
    for (const { object, path } of [...others, ...barrier]) await cluster().call("POST", path, object);
    await eventually("the last policy is in force", async () => {
      const { body } = await create(placed[0] ?? "", { [LABEL]: `${ID}-barrier` }, {});
      return stringAt(body, "spec", "nodeSelector", "barrier") === "reached";
    });
  });

  afterAll(async () => {
    await Promise.all(
      [
        ...paths.map(({ object, path }) => `${path}/${nameOf(object)}`),
        ...[...placed, plain].map((name) => `/api/v1/namespaces/${name}`),
      ].map((path) => cluster().request("DELETE", path)),
    );
  });

  test(`is what usher makes of ${PODS} pods with ${POLICIES} policies`, async () => {
    const differences: JsonObject[] = [];
    let [changed, refused, fromNamespace] = [0, 0, 0];
    const queue = WRITTEN.map((spec, i) => ({
      spec,
      name: `${ID}-${i % POLICIES}`,
      policy: SPECS[i % POLICIES] ?? {},
      namespace: placed[Math.floor(i / POLICIES) % placed.length] ?? "",
    }));
    const work = async () => {
      for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
        const labels = { [LABEL]: next.name };
        const [before, after] = [
          await create(plain, labels, next.spec),
          await create(next.namespace, labels, next.spec),
        ];
        if (before.status !== 201) {
          expect(after.status, JSON.stringify(after.body)).toBe(before.status);
          continue;
        }
        const pod = structuredClone(before.body) as JsonObject & { metadata: JsonObject };
        const request = requestFor({ ...pod, metadata: { ...pod.metadata, namespace: next.namespace } });
        const made = await byUsher(assembly, request);
        const expected = made === undefined ? "refused" : withoutNotes(made);
        const isRefused = JSON.stringify(after.body).includes("USHER-P30");
        const real = isRefused ? "refused" : withoutNotes(after.body);
        if (real === "refused") refused++;
        if (real !== withoutNotes(before.body)) {
          changed++;
          if (next.policy["fromNamespace"] !== undefined) fromNamespace++;
        }
        if (real !== expected)
          differences.push({
            policy: next.policy,
            namespace: NAMESPACES[placed.indexOf(next.namespace)] ?? {},
            pod: next.spec,
            usher: expected,
            server: real,
          });
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
    expect(differences.slice(0, 3)).toEqual([]);
    // Most pods get something, or the comparison says nothing.
    expect(changed).toBeGreaterThan(PODS / 2);
    expect(refused).toBeGreaterThan(PODS / 20);
    expect(fromNamespace).toBeGreaterThan(PODS / 12);
  }, 600_000);

  test(`is what usher makes of pods that two policies select, or the report names their order`, async () => {
    const ordered = new Set(
      rows
        .filter(({ leftOut }) => leftOut.some(({ what }) => what === "the order of policies"))
        .map(({ policy }) => policy.name.replace(/-[01]$/, "")),
    );
    const counts = { same: 0, named: 0 };
    for (const [i, spec] of fc.sample(podSpec, { numRuns: PAIRS * PODS_OF_PAIR, seed: SEED }).entries()) {
      const name = `${ID}-pair-${i % PAIRS}`;
      const labels = { [LABEL]: name };
      const [namespace = ""] = placed;
      const [before, after] = [await create(plain, labels, spec), await create(namespace, labels, spec)];
      if (before.status !== 201) continue;
      const pod = structuredClone(before.body) as JsonObject & { metadata: JsonObject };
      const request = requestFor({ ...pod, metadata: { ...pod.metadata, namespace } });
      const made = await byUsher(assembly, request);
      const isRefused = JSON.stringify(after.body).includes("USHER-P30");
      const isSame = inAnyOrder(made ?? "refused") === inAnyOrder(isRefused ? "refused" : after.body);
      if (!isSame)
        expect(ordered.has(name), JSON.stringify({ policies: PAIRED[i % PAIRS], spec })).toBe(true);
      counts[isSame ? "same" : "named"]++;
    }
    // Not every pair is named, and most pods of those that are come out the same.
    expect(ordered.size).toBeLessThan(PAIRS);
    expect(counts.same).toBeGreaterThan(counts.named);
  }, 600_000);
});

describeCluster("the budget of compiled placement", (cluster) => {
  const KEY = "topology.example.com/pool-of-nodes-";
  const termsOf = (name: string, terms: number, requirements: number, values = ["value-0", "value-1"]) => ({
    nodeSelectorTerms: [...Array(terms).keys()].map((t) => ({
      matchExpressions: [...Array(requirements).keys()].map((r) => ({
        key: `${KEY}${name}${t}-${r}`,
        operator: "In",
        values,
      })),
    })),
  });
  /** As LARGE in criteria/cel.ts. */
  const large: JsonObject = {
    nodeSelector: Object.fromEntries([...Array(4).keys()].map((i) => [`${KEY}s${i}`, "value-0"])),
    affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: termsOf("k", 4, 4) } },
    tolerations: [...Array(6).keys()].map((i) => ({ key: `${KEY}t${i}`, operator: "Exists" })),
  };
  const policyWith = (name: string, terms: JsonObject) =>
    policyOf(`${ID}-${name}`, {
      failurePolicy: "Fail",
      affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: terms } },
    });
  const rowOf = (policy: JsonObject) => {
    const resource = "clusterpodschedulingpolicies.kupid.gardener.cloud";
    const assembly = assemblyOf(
      [placement],
      [{ resource, namespace: "", name: nameOf(policy), object: policy }],
    );
    const [first] = rowsOf(placement, assembly);
    if (first === undefined) throw new Error("the policy is missing");
    return first;
  };
  const WITHIN = policyWith("within", termsOf("w", 24, 2));
  const OVER = policyWith("over", termsOf("w", 32, 2));
  const LONG_TEXT = policyWith(
    "long",
    termsOf(
      "w",
      1,
      2,
      [...Array(2_000).keys()].map((i) => `value-of-forty-characters-or-so-${i}`),
    ),
  );
  /** The objects of a policy over the budget, as they would be. */
  const unbounded = (policy: JsonObject): readonly JsonObject[] => {
    const { variables } = compileCriteria(parseCriteria(policy["spec"] as JsonObject, []));
    const text = JSON.stringify(rowOf(WITHIN).objects).replaceAll(nameOf(WITHIN), nameOf(policy));
    return (JSON.parse(text) as { kind: string; spec: JsonObject }[]).map((object) =>
      object.kind === "MutatingAdmissionPolicy"
        ? { ...object, spec: { ...object.spec, variables: variables as unknown as Json } }
        : object,
    ) as unknown as JsonObject[];
  };
  const paths = [...rowOf(WITHIN).objects, ...unbounded(OVER)].map((object) => ({
    object,
    path: `${ADMISSION}/${object["kind"] === "MutatingAdmissionPolicy" ? "mutatingadmissionpolicies" : "mutatingadmissionpolicybindings"}`,
  }));
  let namespace = "";

  beforeAll(async () => {
    namespace = await createNamespace(cluster(), { [LABEL]: "yes" });
    for (const { object, path } of paths) await cluster().call("POST", path, object);
  });
  afterAll(async () => {
    const gone = paths.map(({ object, path }) => `${path}/${nameOf(object)}`);
    await Promise.all(
      [...gone, `/api/v1/namespaces/${namespace}`].map((path) => cluster().request("DELETE", path)),
    );
  });
  const create = (policy: JsonObject) =>
    cluster().request("POST", `/api/v1/namespaces/${namespace}/pods?dryRun=All`, {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: "large", labels: { [LABEL]: nameOf(policy) } },
      spec: { ...large, ...SPEC },
    });

  test("is kept by a policy that is compiled: a large pod gets its terms", async () => {
    expect(rowOf(WITHIN).objects).toHaveLength(2);
    await eventually("the policy is in force", async () => {
      const { status, body } = await create(WITHIN);
      expect(status, JSON.stringify(body)).toBe(201);
      const terms = ["spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"];
      return listAt(body, ...terms, "nodeSelectorTerms").length === 96;
    });
  });

  test("is exceeded by a policy that is not compiled: the API server stops its evaluation", async () => {
    expect(rowOf(OVER)).toMatchObject({
      objects: [],
      cost: 1_507_328,
      leftOut: [{ why: expect.stringContaining("its estimated cost for a large pod is 1507328") }],
    });
    await eventually("the policy is in force", async () => {
      const { status, body } = await create(OVER);
      return status !== 201 && JSON.stringify(body).includes("cost limit exceeded");
    });
  });

  test("is exceeded by an expression that is too long: the API server refuses the policy", async () => {
    expect(rowOf(LONG_TEXT)).toMatchObject({
      objects: [],
      leftOut: [{ why: expect.stringMatching(/^an expression would have \d+ characters/) }],
    });
    const [object] = unbounded(LONG_TEXT);
    const { status, body } = await cluster().request("POST", paths[0]?.path ?? "", object);
    expect([status, stringAt(body, "message")]).toEqual([
      422,
      expect.stringContaining("expression code point size exceeds limit"),
    ]);
  });
});

describeCluster("compiled node-labels on an API server", (cluster) => {
  const ruleOf = (name: string, spec: JsonObject): JsonObject => ({
    apiVersion: "node-labels.openshift.io/v1beta1",
    kind: "Labels",
    metadata: { name: `${ID}-${name}`, namespace: "default" },
    spec,
  });
  const rules = [
    ruleOf("edge", {
      nodeNamePatterns: [`edge-${ID}-[0-3]`, `${ID}-.*`],
      labels: { "example.com/pool": "edge", "node-role.kubernetes.io/edge": "" },
      taints: [{ key: "example.com/edge", value: "yes", effect: "NoSchedule" }],
    }),
    ruleOf("site", {
      nodeNamePatterns: [`edge-${ID}-(1|4)`],
      labels: { "example.com/site~a": "north" },
      annotations: { "example.com/contact": "a@example.com" },
    }),
    ruleOf("fast", {
      nodeNamePatterns: [`edge-${ID}-.`],
      nodeSelector: { matchLabels: { disk: "fast" } },
      labels: { "example.com/fast": "yes" },
    }),
  ];
  const assembly = assemblyOf(
    [nodeLabels],
    [
      ...rules.map((object) => ({
        resource: "labels.node-labels.openshift.io",
        namespace: "default",
        name: nameOf(object),
        object,
      })),
    ],
  );
  const paths = pathsOf(rowsOf(nodeLabels, assembly));

  beforeAll(async () => {
    for (const { object, path } of paths) await cluster().call("POST", path, object);
    await eventually("the last rule is in force", async () => {
      const { body } = await create(`edge-${ID}-9`, { disk: "fast" }, []);
      return stringAt(body, "metadata", "labels", "example.com/fast") === "yes";
    });
  });

  afterAll(async () => {
    await Promise.all(
      paths.map(({ object, path }) => cluster().request("DELETE", `${path}/${nameOf(object)}`)),
    );
  });

  const nodeOf = (name: string, labels: JsonObject, taints: readonly JsonObject[]): JsonObject => ({
    apiVersion: "v1",
    kind: "Node",
    metadata: { name, labels },
    spec: taints.length === 0 ? {} : { taints },
  });
  const create = (name: string, labels: JsonObject, taints: readonly JsonObject[], user?: Identity) =>
    cluster().request("POST", "/api/v1/nodes?dryRun=All", nodeOf(name, labels, taints), user);

  const names = [...Array(6).keys()].map((i) => `edge-${ID}-${i}`);
  const cases = [...names, `${ID}-x`, `x${ID}-edge`].flatMap((name) =>
    [{}, { disk: "fast" }, { disk: "slow", "example.com/pool": "other" }].flatMap((labels) =>
      [[], [{ key: "example.com/edge", value: "no", effect: "NoSchedule" }]].flatMap((taints) =>
        [true, false].map((itself) => ({ name, labels, taints, itself })),
      ),
    ),
  );

  test(`is what usher makes of ${cases.length} nodes`, async () => {
    let changed = 0;
    for (const { name, labels, taints, itself } of cases) {
      const identity = { user: `system:node:${name}`, groups: ["system:nodes"] };
      const { status, body } = await create(name, labels, taints, itself ? identity : undefined);
      expect(status, JSON.stringify({ name, labels, taints, itself, body })).toBe(201);
      // The API server adds its own taint to a new node before policies and webhooks.
      const own = listAt(body, "spec", "taints").filter(
        (one) => !equal(one, EDGE) && at(one, "key") !== EDGE.key,
      );
      // An evaluation edits its object.
      const before = structuredClone(nodeOf(name, labels, [...taints, ...own] as JsonObject[]));
      const userInfo = itself ? { username: identity.user, groups: identity.groups } : undefined;
      const request = requestFor(before, userInfo === undefined ? {} : { userInfo });
      const made = await byUsher(assembly, request);
      expect(summaryOf(body), `${name} ${JSON.stringify({ labels, taints, itself })}`).toEqual(
        summaryOf(made ?? null),
      );
      if (!equal(at(body, "metadata", "labels") ?? {}, labels)) changed++;
    }
    expect(changed).toBeGreaterThan(cases.length / 2);
  });
});

const EDGE = { key: "example.com/edge", value: "yes", effect: "NoSchedule" };

/** Labels, annotations and taints, without usher's record and the startup taint, which are left out. */
function summaryOf(node: Json) {
  const annotations = Object.entries(at(node, "metadata", "annotations") ?? {});
  const taints = listAt(node, "spec", "taints").filter((one) => at(one, "key") !== "usher.dev/starting");
  return {
    labels: at(node, "metadata", "labels") ?? {},
    annotations: annotations.filter(([key]) => !NOTES.has(key)).sort(),
    taints: taints.map(canonical).sort(),
  };
}

describeCluster("compiled exceptions of Pod Security on an API server", (cluster) => {
  // The plugin of this control plane exempts no namespace, and would refuse pods before: it does not know these labels.
  const [PREFIX, OTHER] = ["pod-security.kubernetes.io/", `${ID}.example.com/`];
  const LEVELS: readonly Readonly<Record<string, string>>[] = [
    { enforce: "restricted" },
    { enforce: "baseline", "enforce-version": "latest" },
    { enforce: "restricted", "enforce-version": "v1.34" },
    { enforce: "baseline", "enforce-version": "v1.18" },
    { enforce: "restricted", "enforce-version": "v1.24" },
    { enforce: "Restricted", "enforce-version": "v1.x" },
    {},
  ];
  const DAY_MS = 86_400_000;
  const WAIVED = CHECKS.map(({ id }) => id);
  const inDays = (days: number) => new Date(Date.now() + days * DAY_MS).toISOString();
  const exception = (name: string, namespaces: readonly string[], spec: JsonObject): JsonObject => ({
    apiVersion: "usher.dev/v1alpha1",
    kind: "PodSecurityException",
    metadata: { name: `${ID}-${name}` },
    spec: { namespaces: [...namespaces], expires: inDays(30), ...spec },
  });
  const exceptionsFor = (namespaces: readonly string[]): readonly JsonObject[] => [
    exception("labels", namespaces, {
      checks: WAIVED.filter((_, i) => i % 2 === 0),
      podSelector: {
        matchLabels: { tier: "odd" },
        matchExpressions: [{ key: "app", operator: "NotIn", values: ["web"] }],
      },
    }),
    exception("images", namespaces, {
      checks: WAIVED.filter((_, i) => i % 3 === 0),
      images: ["registry.example/a*", "i"],
      containers: ["containers", "a"],
    }),
    exception("accounts", namespaces, { checks: WAIVED, serviceAccounts: ["builder"] }),
    exception("late", namespaces, { checks: WAIVED, expires: inDays(400) }),
    exception("over", namespaces, { checks: WAIVED, expires: inDays(-1) }),
    exception("elsewhere", ["other"], { checks: WAIVED }),
  ];
  const settings = { "pod-os": { podSecurity: { mode: "Replace", windowsChecks: true } } };
  const assembly = assemblyOf([podOS], [], { ...DEFAULT_INSTALLATION, settings });
  const minorOf = (version = "") => Number(/^v1\.(\d+)$/.exec(version)?.[1] ?? 37);
  const namespaces: { readonly name: string; readonly labels: Readonly<Record<string, string>> }[] = [];
  let plain = "";
  let paths: ReturnType<typeof pathsOf> = [];

  const create = (
    namespace: string,
    { metadata, spec }: Pick<AskedPod, "metadata" | "spec">,
    labels: JsonObject,
  ) =>
    cluster().request("POST", `/api/v1/namespaces/${namespace}/pods?dryRun=All`, {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { ...metadata, labels },
      spec,
    });

  beforeAll(async () => {
    plain = await createNamespace(cluster());
    for (const labels of LEVELS) {
      const withPrefix = (prefix: string) =>
        Object.fromEntries(Object.entries(labels).map(([key, value]) => [`${prefix}${key}`, value]));
      const name = await createNamespace(cluster(), withPrefix(OTHER));
      const object = { metadata: { name, labels: withPrefix(PREFIX) } };
      assembly.apply([{ resource: "namespaces", namespace: "", name, object }]);
      namespaces.push({ name, labels });
    }
    assembly.apply(
      exceptionsFor(namespaces.map(({ name }) => name)).map((object) => ({
        resource: "podsecurityexceptions.usher.dev",
        namespace: "",
        name: nameOf(object),
        object,
      })),
    );
    const rows = rowsOf(podOS, assembly, Date.now());
    const results = rows.map((row) => [row.policy.name.slice(ID.length + 1), compileResult(row)]);
    expect(Object.fromEntries(results)).toEqual({
      labels: "in part",
      images: "in part",
      accounts: "in part",
      late: "in part",
      elsewhere: "in part",
      over: "not",
    });
    paths = pathsOf(rows);
    for (const { object, path } of paths)
      await cluster().call("POST", path, JSON.parse(JSON.stringify(object).replaceAll(PREFIX, OTHER)));
    const bare = { metadata: { name: "p" }, spec: { containers: [{ name: "c", image: "app:1" }] } };
    await eventually("the policies are in force", async () => {
      const { body } = await create(namespaces[0]?.name ?? "", bare, {});
      // Another error would hold for ever.
      expect(JSON.stringify(body)).toContain("violates check");
      return true;
    });
    await sleep(1_000);
  });

  afterAll(async () => {
    const gone = [
      ...paths.map(({ object, path }) => `${path}/${nameOf(object)}`),
      ...[plain, ...namespaces.map(({ name }) => name)].map((name) => `/api/v1/namespaces/${name}`),
    ];
    await Promise.all(gone.map((path) => cluster().request("DELETE", path)));
  });

  test(`refuse what usher refuses, of ${LONG ? "all" : "some"} pods of all checks`, async () => {
    const counts = { allowed: 0, refused: 0, waived: 0 };
    const differences: string[] = [];
    const queue = namespaces
      .flatMap((namespace) =>
        [...podsAt(minorOf(namespace.labels["enforce-version"])), ...MIXED].map((pod) => ({
          namespace,
          pod,
        })),
      )
      .flatMap((one) =>
        [{ app: "db" }, { tier: "odd" }, { tier: "odd", app: "web" }].map((labels) => ({ ...one, labels })),
      )
      // Prime to the numbers of labels and values, so that all meet.
      .filter((_, i) => LONG || i % 13 === 0);
    const work = async () => {
      for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
        const { namespace, pod, labels } = next;
        const [before, after] = [await create(plain, pod, labels), await create(namespace.name, pod, labels)];
        if (before.status !== 201) {
          expect(after.status, JSON.stringify(after.body)).toBe(before.status);
          continue;
        }
        const object = structuredClone(before.body) as JsonObject & { metadata: JsonObject };
        const request = requestFor({
          ...object,
          metadata: { ...object.metadata, namespace: namespace.name },
        });
        const call = callOf(assembly, request, { phase: "validate", now: Date.now() });
        const { denials, findings } = await evaluate(call, outside());
        const expected = denials.length > 0 ? 403 : 201;
        if (after.status !== expected)
          differences.push(
            JSON.stringify({
              labels: namespace.labels,
              pod: labels,
              spec: pod.spec,
              expected,
              after: after.body,
            }),
          );
        counts[expected === 201 ? "allowed" : "refused"]++;
        if (expected === 201 && findings.some(({ outcome }) => outcome === "authorized")) counts.waived++;
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
    expect(differences.slice(0, 2)).toEqual([]);
    const { allowed, refused, waived } = counts;
    expect(allowed + refused, JSON.stringify(counts)).toBeGreaterThan(LONG ? 2_000 : 150);
    // All three are many, or the comparison says nothing.
    expect(Math.min(allowed - waived, refused, waived), JSON.stringify(counts)).toBeGreaterThan(
      LONG ? 200 : 8,
    );
  }, 600_000);
});
