import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { ReviewHandler } from "../src/admission/review/handle.ts";
import type { Need } from "../src/core/decision/need.ts";
import type { Source } from "../src/core/evaluate/source.ts";
import { blastRadius, blastRadiusWarnings } from "../src/core/foresight/blast-radius.ts";
import { Gates } from "../src/core/installation/gates.ts";
import { DEFAULT_INSTALLATION, type Installation } from "../src/core/installation/installation.ts";
import { type JsonObject, listAt, stringAt } from "../src/core/json.ts";
import { nameOf, namespaceOf } from "../src/core/kubernetes/object.ts";
import { parseVersion } from "../src/core/kubernetes/versions.ts";
import { type Log, SILENT } from "../src/core/log.ts";
import { Assembly } from "../src/core/module/assembly.ts";
import { PREVIEW_ACCESS } from "../src/core/module/module.ts";
import { policyCheck } from "../src/core/module/policy-check.ts";
import { type Kind, kindResource } from "../src/core/policy/kind.ts";
import { modules } from "../src/modules/all.ts";
import { CONTROL_PLANE_LABEL, NODES } from "./builders/guard.ts";
import { node, owned, rule } from "./builders/node.ts";
import { controlledBy, pod } from "./builders/pod.ts";
import { came, clusterPolicy, namespace, namespacedPolicy } from "./builders/policy.ts";
import { limits, projects } from "./builders/project-limit.ts";
import { responseOf, review } from "./support/admission/example-cluster.ts";

const KINDS = modules.flatMap(({ kinds }) => kinds).filter(({ standing }) => standing === "resource");
const ALL = [...modules, policyCheck(modules)];
const NOW = Date.parse("2026-11-16T12:00:00Z");

interface Cluster {
  readonly pods?: readonly JsonObject[];
  /** Beside those of every test. */
  readonly nodes?: readonly JsonObject[];
  /** Policies that are there. */
  readonly policies?: readonly JsonObject[];
  readonly installation?: Partial<Installation>;
  readonly fetch?: Source["fetch"];
}

function kindOf(object: JsonObject): Kind {
  const kind = KINDS.find((one) => one.kind === stringAt(object, "kind"));
  if (kind === undefined) throw new Error(`no kind ${stringAt(object, "kind")}`);
  return kind;
}

function changeOf(object: JsonObject) {
  return {
    resource: kindResource(kindOf(object)),
    namespace: namespaceOf(object),
    name: nameOf(object),
    object,
  };
}

/** A cluster as a source: pods are listed in pages, as an API server lists them. */
function sourceOf({ pods = [], nodes = [], policies = [], installation = {}, fetch }: Cluster): Source {
  const gates = ALL.flatMap((module) => module.gates ?? []).map((gate) => ({ ...gate, default: true }));
  const settings = { "pod-os": { podSecurity: { mode: "Replace" } }, "node-guard": { schedulerCRD: true } };
  const assembly = new Assembly(
    ALL,
    { ...DEFAULT_INSTALLATION, settings, ...installation },
    new Gates(gates),
  );
  const version = parseVersion("v1.34.0");
  if (version !== undefined) assembly.observeServerVersion({ effective: version, binary: version });
  for (const kind of KINDS) assembly.serve(kindResource(kind));
  assembly.apply([
    came(namespace("shop")),
    came(namespace("lab")),
    came(namespace("strict", { "pod-security.kubernetes.io/enforce": "restricted" })),
    ...projects("alice", 3),
    ...[...NODES, ...nodes].map(came),
    ...policies.map(changeOf),
  ]);
  const list = (need: Extract<Need, { list: unknown }>) => {
    const wanted = pods.filter(
      (one) => need.list.namespace === undefined || namespaceOf(one) === need.list.namespace,
    );
    const from = Number(need.list.continue ?? 0);
    const found = wanted.slice(from, from + need.limit);
    const next = from + found.length;
    return next < wanted.length
      ? { found, complete: false, next: String(next), total: wanted.length - from }
      : { found, complete: true, total: found.length };
  };
  return {
    assembly,
    ready: true,
    fetch: async (needs) => needs.map((need) => ("list" in need ? list(need) : { absent: "NotFound" })),
    commit: async () => "done",
    stop: async () => undefined,
    ...(fetch === undefined ? {} : { fetch }),
  };
}

interface Write {
  readonly old?: JsonObject;
  readonly log?: Log;
  readonly dryRun?: boolean;
  readonly trusted?: boolean;
  readonly handler?: ReviewHandler;
}

async function write(
  object: JsonObject,
  source: Source,
  { old, log = SILENT, dryRun = false, trusted = true, ...more }: Write = {},
) {
  const { group, kind, plural } = kindOf(object);
  const version = (stringAt(object, "apiVersion") ?? "").split("/").at(-1) ?? "";
  const body = review({
    kind: { group, version, kind },
    resource: { group, version, resource: plural },
    name: nameOf(object),
    namespace: namespaceOf(object),
    operation: old === undefined ? "CREATE" : "UPDATE",
    object,
    oldObject: old ?? null,
    dryRun,
  });
  const { handler = new ReviewHandler({ source, log, now: () => NOW, acceptsToken: () => trusted }) } = more;
  const response = responseOf(await handler.handle(Buffer.from(JSON.stringify(body)), "/validate/policies"));
  return { allowed: response["allowed"], warnings: listAt(response, "warnings").map(String) };
}

/** A pod of a Deployment, by way of a ReplicaSet. */
const replica = (i: number, name = "web", where = "shop") =>
  pod({
    name: `${name}-5d-${i}`,
    namespace: where,
    labels: { "pod-template-hash": "5d" },
    owner: controlledBy("apps/v1", "ReplicaSet", `${name}-5d`),
  });

const zone = (value: string, more: JsonObject = {}) =>
  clusterPolicy("zone", { namespaceSelector: {}, podSelector: {}, nodeSelector: { zone: value }, ...more });

const ON_CONTROL_PLANE = pod({
  name: "miner",
  namespace: "lab",
  spec: {
    containers: [{ name: "main", image: "miner:1" }],
    nodeSelector: { [CONTROL_PLANE_LABEL]: "" },
    tolerations: [{ operator: "Exists" }],
  },
});

const GUARD = { apiVersion: "scheduling.openshift.io/v1alpha1", kind: "NodeSchedulingPolicy" };
const enabled = (mode: string) => ({
  ...GUARD,
  metadata: { name: "cluster", generation: 1 },
  spec: { groups: [{ name: "ControlPlane", mode }] },
});

/** A write of each kind of policy, and the warnings that it is answered with. */
const WRITES: Readonly<Record<string, readonly [JsonObject, Cluster, readonly (string | RegExp)[]]>> = {
  ClusterPodSchedulingPolicy: [
    zone("b"),
    { policies: [zone("a")], pods: [replica(0), replica(1), pod({ name: "alone", namespace: "lab" })] },
    [
      "if created again, 3 existing pods would be changed (looked at 3 of 3 pods)",
      "Deployment shop/web, Pod lab/alone: - nodeSelector zone=a, + nodeSelector zone=b",
    ],
  ],
  PodSchedulingPolicy: [
    namespacedPolicy("lab", "zone", { podSelector: {}, nodeSelector: { zone: "b" } }),
    {
      pods: [
        replica(0),
        pod({ name: "bare-x1", namespace: "lab", owner: controlledBy("apps/v1", "ReplicaSet", "bare") }),
      ],
    },
    [
      "if created again, 1 existing pod would be changed (looked at 1 of 1 pods)",
      "ReplicaSet lab/bare: + nodeSelector zone=b",
    ],
  ],
  NodeSchedulingPolicy: [
    enabled("Enable"),
    { policies: [enabled("Disable")], pods: [replica(0), ON_CONTROL_PLANE] },
    [
      "if created again, 1 existing pod would be refused (looked at 2 of 2 pods)",
      /^Pod lab\/miner: refused, USHER-G\d+: pod lab\/miner can only run on nodes cp-0/,
    ],
  ],
  PodSecurityException: [
    {
      apiVersion: "usher.dev/v1alpha1",
      kind: "PodSecurityException",
      metadata: { name: "legacy", generation: 1 },
      spec: {
        namespaces: ["strict"],
        checks: [
          "allowPrivilegeEscalation",
          "capabilities_restricted",
          "runAsNonRoot",
          "seccompProfile_restricted",
        ],
        reason: "moves next year",
        owner: "team-a",
        expires: "2027-01-01T00:00:00Z",
      },
    },
    { pods: [pod({ name: "old", namespace: "strict" })] },
    [
      "if created again, 1 existing pod would be admitted again (looked at 1 of 1 pods)",
      "Pod strict/old: admitted again",
    ],
  ],
  Labels: [
    rule("site", { nodeNamePatterns: ["w-.*"], labels: { "example.com/site": "north" } }),
    {},
    ["2 of 5 nodes would change", "Node w-0, Node w-1: + label example.com/site=north"],
  ],
  OwnedLabels: [
    owned("telco", { domain: "example.com" }),
    { nodes: [node("w-2", { "example.com/site": "north" })] },
    ["1 of 6 nodes would change", "Node w-2: - label example.com/site=north"],
  ],
  ProjectRequestLimit: [
    limits({ limits: [{ maxProjects: 2 }], namespaces: {} }),
    {},
    ["1 user would be over the limit", "User alice: 3 projects, at most 2 (limits[0])"],
  ],
  NodeGuardOverride: [
    {
      apiVersion: "usher.dev/v1alpha1",
      kind: "NodeGuardOverride",
      metadata: { name: "now", generation: 1 },
      spec: {
        group: "ControlPlane",
        mode: "Inform",
        from: "2026-11-16T11:00:00Z",
        until: "2026-11-16T18:00:00Z",
        reason: "repair",
      },
    },
    { policies: [enabled("Enable")], pods: [ON_CONTROL_PLANE] },
    [
      "if created again, 1 existing pod would be admitted again (looked at 1 of 1 pods)",
      "Pod lab/miner: admitted again",
    ],
  ],
  Scheduler: [
    {
      apiVersion: "config.openshift.io/v1",
      kind: "Scheduler",
      metadata: { name: "cluster", generation: 1 },
      spec: { mastersSchedulable: true },
    },
    { policies: [enabled("Enable")], pods: [ON_CONTROL_PLANE] },
    [
      "if created again, 1 existing pod would be admitted again (looked at 1 of 1 pods)",
      "Pod lab/miner: admitted again",
    ],
  ],
};

describe("the write of a policy is answered with warnings about what it changes", () => {
  test("usher may list pods for every module whose policies have a say about them, and for no other", () => {
    const { assembly } = sourceOf({ policies: [zone("a"), enabled("Enable")] });
    const judging = new Set(
      assembly.hooks.flatMap(({ module, rules }) =>
        rules.some(({ resources, operations }) => resources.includes("pods") && operations.includes("CREATE"))
          ? [module]
          : [],
      ),
    );
    const may = modules.filter(({ access = [] }) =>
      access.some(({ when = [] }) => PREVIEW_ACCESS.when.every((one) => when.includes(one))),
    );
    expect(may.map(({ name }) => name).sort()).toEqual([...judging].sort());
    expect(may.length).toBeGreaterThan(2);
  });

  test("every kind of policy is written here", () => {
    expect(Object.keys(WRITES).sort()).toEqual(KINDS.map(({ kind }) => kind).sort());
  });

  test.each(Object.entries(WRITES))("%s", async (_, [object, cluster, warnings]) => {
    const answer = await write(object, sourceOf(cluster));
    expect(answer.allowed).toBe(true);
    // Problems of the policy itself come first.
    expect(answer.warnings.filter((text) => !text.startsWith("spec"))).toEqual(
      warnings.map((text) => (typeof text === "string" ? text : expect.stringMatching(text))),
    );
  });

  test("the worst outcome comes first, and outcomes beyond the fifth are counted", async () => {
    const apps = Array.from({ length: 9 }, (_, i) =>
      pod({ name: `app-${i}`, labels: { app: "a" }, spec: { ...SPEC, nodeSelector: { zone: `${i}` } } }),
    );
    const own = await unspecific(zone("b"), sourceOf({ pods: [...apps, replica(0)] }));
    expect(own[0]).toBe(
      "if created again, 1 existing pod would be changed, 9 admitted with a warning (looked at 10 of 10 pods)",
    );
    expect(own[1]).toBe("Deployment shop/web: + nodeSelector zone=b");
    expect(own[2]).toMatch(/^Pod shop\/app-0: .*USHER-P01/);
    expect(own.at(-1)).toBe("and 5 more outcomes; usher diff shows all of them");
  });

  test("finished, terminating and mirror pods do not count", async () => {
    const pods = [
      { ...pod({ name: "done" }), status: { phase: "Succeeded" } },
      pod({ name: "leaving", metadata: { deletionTimestamp: "2026-11-16T11:00:00Z" } }),
      pod({ name: "mirror", annotations: { "kubernetes.io/config.mirror": "x" } }),
    ];
    expect(await unspecific(zone("b"), sourceOf({ pods }))).toEqual([]);
  });
});

const SPEC = { containers: [{ name: "main", image: "main:1" }] };
const POLICIES = [zone("a")];

/** The warnings that are not about the policy itself. */
async function unspecific(object: JsonObject, source: Source, more: Parameters<typeof write>[2] = {}) {
  const { allowed, warnings } = await write(object, source, more);
  expect(allowed).toBe(true);
  return warnings.filter((text) => !text.startsWith("spec"));
}

describe("the preview is bounded, and never stands in the way of the write", () => {
  const forbidden = (): Source["fetch"] => () => Promise.reject(new Error("pods were listed"));

  test("it looks at 3,000 pods, and says so", async () => {
    const pods = Array.from({ length: 3_101 }, (_, i) => replica(i, `set-${i % 50}`));
    const { assembly } = sourceOf({ policies: POLICIES });
    const warned = async (object: JsonObject) => {
      const found = await blastRadius(assembly, changeOf(object), {
        now: NOW,
        pods: async function* () {
          for (let i = 0; i < pods.length; i += 20)
            yield { pods: pods.slice(i, i + 20), total: pods.length, last: i + 20 >= pods.length };
        },
        pause: () => undefined,
        expired: () => false,
      });
      return found === undefined ? [] : blastRadiusWarnings(found);
    };
    expect((await warned(zone("b")))[0]).toBe(
      "if created again, 3,000 existing pods would be changed (looked at 3,000 of 3,101 pods; usher diff looks at all of them)",
    );
    expect(await warned(zone("a"))).toEqual([
      "compared with a part of what exists, and found no change: looked at 3,000 of 3,101 pods; usher diff looks at all of them",
    ]);
  });

  test("it looks for a second, and says how far it came", async () => {
    const { fetch, ...source } = sourceOf({
      policies: POLICIES,
      pods: Array.from({ length: 100 }, (_, i) => replica(i)),
    });
    const slow: Source["fetch"] = async (needs, deadline) => {
      await sleep(300);
      return fetch(needs, deadline);
    };
    const started = performance.now();
    const [first] = await unspecific(zone("b"), { ...source, fetch: slow });
    expect(performance.now() - started).toBeLessThan(3_500);
    expect(first).toMatch(/\(looked at \d+ of 100 pods; usher diff looks at all of them\)$/);
  });

  test("a source that never answers costs a second", async () => {
    const source = sourceOf({ fetch: () => new Promise(() => undefined) });
    const started = performance.now();
    expect(await unspecific(zone("b"), source)).toEqual([
      expect.stringMatching(
        /^compared with a part of what exists, and found no change: looked at 0 of the pods; /,
      ),
    ]);
    expect(performance.now() - started).toBeLessThan(3_500);
  });

  test.each<[string, Source["fetch"]]>([
    ["fails", async (needs) => needs.map(() => ({ failed: "pods is forbidden" }))],
    ["rejects", forbidden()],
    ["does not answer with a list", async (needs) => needs.map(() => ({ found: {}, complete: true }))],
  ])("a list that %s is reported, and the write passes", async (_, fetch) => {
    const [only, ...others] = await unspecific(zone("b"), sourceOf({ fetch }));
    expect(others).toEqual([]);
    expect(only).toMatch(
      /looked at 0 of the pods; (pods is forbidden|internal error fetching facts|not a list)$/,
    );
  });

  test("only one policy at a time is compared", async () => {
    const source = sourceOf({ policies: POLICIES, pods: [replica(0)] });
    const handler = new ReviewHandler({ source, log: SILENT, now: () => NOW });
    const [first, second] = await Promise.all([
      unspecific(zone("b"), source, { handler }),
      unspecific(zone("c"), source, { handler }),
    ]);
    expect(first?.[0]).toContain("1 existing pod would be changed");
    expect(second).toEqual([
      "not compared with what exists: another policy is being compared; usher diff compares it",
    ]);
    expect((await unspecific(zone("d"), source, { handler }))[0]).toContain("would be changed");
  });

  test("other reviews are answered in between", async () => {
    const pods = Array.from({ length: 3_000 }, (_, i) => pod({ name: `pod-${i}` }));
    const source = sourceOf({ policies: POLICIES, pods });
    const handler = new ReviewHandler({ source, log: SILENT, now: () => NOW });
    // A clock that only this code moves, by a step each time it is read: a busy machine changes nothing.
    const step = 0.05;
    let clock = 0;
    const faked = vi.spyOn(performance, "now").mockImplementation(() => (clock += step));
    // Nor does the deadline of the review.
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    onTestFinished(() => {
      vi.useRealTimers();
      faked.mockRestore();
    });
    let isOver = false;
    const preview = unspecific(zone("b"), source, { handler }).finally(() => {
      isOver = true;
    });
    let longest = 0;
    for (let before = clock; !isOver; before = clock) {
      await new Promise((resolve) => setImmediate(resolve));
      longest = Math.max(longest, clock - before);
    }
    expect((await preview)[0]).toContain("(looked at 3,000 of 3,000 pods)");
    expect(clock).toBeGreaterThan(100);
    // A slice of 1 ms, and the reads of the clock at its ends.
    expect(longest).toBeLessThan(1.5);
  });

  test.each<[string, JsonObject, Partial<Installation>, Parameters<typeof write>[2]]>([
    ["it is off", zone("b"), { previewPolicies: false }, {}],
    ["the spec stays as it is", zone("b"), {}, { old: zone("b", {}) }],
    ["the policy is not valid", zone("b", { priority: "ten" }), {}, {}],
    ["the caller is not trusted", zone("b"), {}, { trusted: false }],
  ])("no pod is listed where %s", async (_, object, installation, more) => {
    const logged: string[] = [];
    const log = { ...SILENT, error: (_facts: object, text: string) => logged.push(text) };
    const source = sourceOf({ policies: POLICIES, installation, fetch: forbidden() });
    const { warnings } = await write(object, source, { ...more, log });
    expect(logged).toEqual([]);
    expect(warnings.filter((text) => !text.startsWith("spec"))).toEqual([]);
  });

  test("a dry run is answered the same", async () => {
    const source = sourceOf({ policies: POLICIES, pods: [replica(0)] });
    expect((await unspecific(zone("b"), source, { dryRun: true }))[0]).toContain("would be changed");
  });
});
