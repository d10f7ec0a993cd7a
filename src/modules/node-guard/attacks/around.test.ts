import { describe, expect, test } from "vitest";
import {
  askGuard,
  binding,
  byLabel,
  type Cluster,
  CONTROL_PLANE_LABEL,
  controlPlaneNode,
  creating,
  GROUP,
  guardAssembly,
  MALLORY,
  podOf,
  required,
  user,
  worker,
} from "../../../../test/builders/guard.ts";
import { requestFor } from "../../../../test/builders/request.ts";
import { Gates } from "../../../core/installation/gates.ts";
import { DEFAULT_INSTALLATION } from "../../../core/installation/installation.ts";
import { type JsonObject, listAt, stringAt } from "../../../core/json.ts";
import { Assembly } from "../../../core/module/assembly.ts";
import { SENT_PROVENANCE } from "../../../core/provenance/match-condition.ts";
import { webhookConfigurations } from "../../../core/registration/webhooks.ts";
import { nodeGuard } from "../index.ts";

const KINDS = [
  ["apps/v1", "Deployment"],
  ["apps/v1", "ReplicaSet"],
  ["apps/v1", "StatefulSet"],
  ["apps/v1", "DaemonSet"],
  ["batch/v1", "Job"],
  ["batch/v1", "CronJob"],
  ["v1", "ReplicationController"],
  ["v1", "PodTemplate"],
] as const;

function workload(apiVersion: string, kind: string, spec: JsonObject): JsonObject {
  const template = { spec: { containers: [], ...spec } };
  const inner = kind === "CronJob" ? { jobTemplate: { spec: { template } } } : { template };
  const place = kind === "PodTemplate" ? { template } : { spec: inner };
  return { apiVersion, kind, metadata: { name: "web", namespace: "team-a" }, ...place };
}

describe("row 3: templates warn and are admitted", () => {
  test.each(KINDS)("row 3: %s %s", async (apiVersion, kind) => {
    for (const [spec, rule] of [
      [{ nodeName: "cp-0" }, "assign"],
      [{ nodeSelector: { [CONTROL_PLANE_LABEL]: "" } }, "exclusive"],
    ] as const) {
      const { allowed, rules, warnings, events } = await askGuard(
        requestFor(workload(apiVersion, kind, spec), { userInfo: MALLORY }),
      );
      expect({ allowed, rules, events }).toEqual({ allowed: true, rules: [rule], events: [] });
      expect(warnings).toHaveLength(1);
    }
    expect((await askGuard(requestFor(workload(apiVersion, kind, {})))).warnings).toEqual([]);
  });

  test("row 3: an update that leaves the template as it is, is not warned of", async () => {
    const object = workload("apps/v1", "Deployment", { nodeName: "cp-0" });
    const { warnings } = await askGuard(
      requestFor(object, { operation: "UPDATE", oldObject: structuredClone(object) }),
    );
    expect(warnings).toEqual([]);
  });
});

describe("access to pods on protected nodes", () => {
  const pods = [podOf({ nodeName: "cp-0" }, { uid: "u" })];
  const on: Cluster = { pods, groups: [{ ...GROUP, guardAccessOnProtectedNodes: true }] };
  const exec = (subResource: string, userInfo = MALLORY) =>
    requestFor(
      { apiVersion: "v1", kind: "PodExecOptions" },
      {
        resource: { group: "", version: "v1", resource: "pods" },
        subResource,
        operation: "CONNECT",
        namespace: "team-a",
        name: "web",
        userInfo,
      },
    );

  test.each(["exec", "attach", "portforward", "proxy"])("row 30: %s", async (subResource) => {
    expect((await askGuard(exec(subResource), { pods })).allowed).toBe(true);
    expect(await askGuard(exec(subResource), on)).toMatchObject({ allowed: false, rules: ["access"] });
    expect((await askGuard(exec(subResource, user("sre")), on)).allowed).toBe(true);
    expect((await askGuard(exec(subResource), { ...on, pods: [podOf({ nodeName: "w-0" })] })).allowed).toBe(
      true,
    );
  });

  test.each(["web:8080", "https:web:8443", ":web:", "http:web:name", "web:"])(
    "row 30: the proxy to a port: %s",
    async (name) => {
      const proxied = { ...exec("proxy"), name };
      expect(await askGuard(proxied, on)).toMatchObject({ allowed: false, rules: ["access"] });
      expect((await askGuard({ ...exec("proxy", user("sre")), name }, on)).allowed).toBe(true);
    },
  );

  test.each(["ephemeralcontainers", "resize"])("rows 30 and 31: %s", async (subResource) => {
    const object = podOf({ nodeName: "cp-0" });
    const request = requestFor(object, {
      operation: "UPDATE",
      oldObject: object,
      subResource,
      userInfo: MALLORY,
    });
    expect((await askGuard(request, { pods })).allowed).toBe(true);
    expect((await askGuard(request, on)).rules).toEqual(["access"]);
  });

  test("a pod that can't be read passes: only assignments are fail-closed", async () => {
    expect((await askGuard(exec("exec"), { ...on, fact: () => ({ failed: "timeout" }) })).allowed).toBe(true);
  });
});

describe("labels of nodes", () => {
  const relabel = (before: JsonObject, after: JsonObject, username = "mallory", subResource = "") =>
    requestFor(after, { operation: "UPDATE", oldObject: before, subResource, userInfo: user(username) });
  const cp = controlPlaneNode("cp-0");
  const notIn = {
    groups: [
      {
        ...GROUP,
        labelSelector: { matchExpressions: [{ key: "pool", operator: "NotIn", values: ["workers"] }] },
      },
    ],
  };

  test.each<[string, ReturnType<typeof relabel>, boolean, Cluster?]>([
    ["row 55: a user removes the label", relabel(cp, worker("cp-0")), false],
    ["row 55: through the status", relabel(cp, worker("cp-0"), "mallory", "status"), false],
    ["row 55: an authorised user", relabel(cp, worker("cp-0"), "sre"), true],
    ["a label that no selector names", relabel(cp, controlPlaneNode("cp-0", { a: "b" })), true],
    [
      "a value that Exists ignores",
      relabel(cp, controlPlaneNode("cp-0", { [CONTROL_PLANE_LABEL]: "true" })),
      true,
    ],
    ["into the group", relabel(worker("w-0"), controlPlaneNode("w-0")), true],
    ["NotIn is left by adding a label", relabel(worker("n"), worker("n", { pool: "workers" })), false, notIn],
    [
      "the node controller",
      relabel(cp, worker("cp-0"), "system:serviceaccount:kube-system:node-controller"),
      true,
    ],
    [
      "usher's own account, although it is listed",
      relabel(cp, worker("cp-0"), "system:serviceaccount:usher-system:usher"),
      false,
      { groups: [{ ...GROUP, authorizedUsers: ["usher-system/usher"] }] },
    ],
    [
      "unprotected labels",
      relabel(cp, worker("cp-0")),
      true,
      { groups: [{ ...GROUP, protectNodeLabels: false }] },
    ],
  ])("%s", async (_what, request, allowed, cluster) => {
    const asked = await askGuard(request, cluster);
    expect(asked.allowed).toBe(allowed);
    if (!allowed) expect(asked).toMatchObject({ code: 403, rules: ["node-labels"] });
  });

  test("the message names once which node may not leave which group", async () => {
    const { message } = await askGuard(relabel(cp, worker("cp-0")));
    expect(message).toContain(
      'node cp-0 may not leave protected group "ControlPlane": user "mallory" is not',
    );
  });
});

describe("registered hooks", () => {
  const entries = (groups: readonly JsonObject[], cluster: Cluster = {}) => {
    const assembly = guardAssembly({ groups, ...cluster });
    const { mutating, validating } = webhookConfigurations(assembly.hooks, assembly.installation, {
      endpoint: { url: "https://usher" },
    });
    return [mutating, validating].flatMap(({ webhooks }) => webhooks as unknown as JsonObject[]);
  };
  const enabled = entries([GROUP]);

  test("row 62: without the fallback pods with a protected node and both bind URLs are fail-closed, for 3 s, and nothing else", () => {
    const guarded = expect.stringMatching(/ in \["cp-0",.*\]$/);
    const closed = enabled.filter(({ failurePolicy }) => failurePolicy === "Fail");
    expect(closed).toMatchObject([
      {
        timeoutSeconds: 3,
        rules: [{ resources: ["pods"], operations: ["CREATE"] }],
        matchConditions: [{ name: "assigned" }, { name: "guarded-node", expression: guarded }],
      },
      {
        timeoutSeconds: 3,
        rules: [{ resources: ["bindings", "pods/binding"], operations: ["CREATE"] }],
        matchConditions: [{ name: "guarded-node", expression: guarded }],
      },
    ]);
    const others = enabled.filter(({ matchConditions }) =>
      JSON.stringify(matchConditions ?? []).includes('"other-node"'),
    );
    expect(others.map(({ failurePolicy }) => failurePolicy)).toEqual(["Ignore", "Ignore"]);
    for (const { namespaceSelector } of closed)
      expect(namespaceSelector).toMatchObject({
        matchExpressions: [
          { operator: "NotIn", values: ["kube-node-lease", "kube-public", "kube-system", "usher-system"] },
        ],
      });
  });

  test("the names of 5,000 protected nodes fit into expressions that CEL parses, each in one fail-closed entry of its hook", () => {
    const names = Array.from({ length: 5_000 }, (_, i) => `ip-10-0-${i}.eu-central-1.compute.internal`);
    const all = entries([GROUP], { nodes: names.map((name) => controlPlaneNode(name)) });
    const conditions = (entry: JsonObject) => listAt(entry, "matchConditions") as { expression: string }[];
    for (const { expression } of all.flatMap(conditions)) expect(expression.length).toBeLessThan(100_000);
    const named = (failurePolicy: string, negated: boolean) =>
      all
        .filter((entry) => entry["failurePolicy"] === failurePolicy)
        .flatMap(conditions)
        .filter(({ expression }) => expression.includes(" in [") && expression.startsWith("!(") === negated)
        .flatMap(({ expression }) => expression.match(/ip-[^"]*/g) ?? []);
    const twice = [...names, ...names].sort();
    expect(named("Fail", false).sort()).toEqual(twice);
    expect(named("Ignore", true).sort()).toEqual(twice);
    const unique = new Set(all.map(({ name }) => name));
    expect(unique.size).toBe(all.length);
  });

  test("row 63: in Inform nothing is fail-closed", () => {
    expect(
      entries([{ ...GROUP, mode: "Inform" }]).filter(({ failurePolicy }) => failurePolicy === "Fail"),
    ).toEqual([]);
  });

  test("row 45: the control plane's namespaces are covered, fail-open", () => {
    const inside = enabled.filter(({ namespaceSelector }) =>
      JSON.stringify(namespaceSelector).includes('"In"'),
    );
    expect(inside.map(({ failurePolicy }) => failurePolicy)).toEqual(["Ignore", "Ignore", "Ignore"]);
    expect(JSON.stringify(inside)).toContain("pods/binding");
  });

  test("rows 65 to 67: namespaces by metadata.name alone, no objectSelector, conditions about placement alone", () => {
    for (const entry of enabled) {
      expect(entry["objectSelector"]).toBeUndefined();
      const keys = JSON.stringify(entry["namespaceSelector"]).match(/"key":"[^"]*"/g) ?? [];
      expect(new Set(keys)).toEqual(
        new Set(keys.length === 0 ? [] : ['"key":"kubernetes.io/metadata.name"']),
      );
      // Provenance of a client adds covered requests, and removes none.
      const conditions = listAt(entry, "matchConditions").map((one) =>
        stringAt(one, "expression")?.replace(`${SENT_PROVENANCE} || `, ""),
      );
      expect(conditions.join()).not.toMatch(/annotations|ownerReferences|metadata\.labels\[/);
    }
  });

  test("row 69: the core group is written as the empty string", () => {
    for (const { rules } of enabled) {
      for (const { apiGroups } of rules as unknown as { apiGroups: string[] }[])
        expect(["", "apps", "batch"]).toEqual(
          expect.arrayContaining(apiGroups.filter((group) => group !== "usher.dev")),
        );
    }
  });

  test("rows 28 and 29: the status of pods is not covered", () => {
    expect(JSON.stringify(enabled)).not.toContain("pods/status");
  });

  test("without a mode nothing but grants of overrides is registered, and without the gate nothing", () => {
    const rules = entries([{ ...GROUP, mode: "Disable" }]).flatMap((entry) => listAt(entry, "rules"));
    expect(rules).toMatchObject([{ resources: ["nodeguardoverrides"] }]);
    const settings = { "node-guard": { policy: { groups: [GROUP] } } };
    const off = new Gates(nodeGuard.gates ?? [], new Map());
    expect(new Assembly([nodeGuard], { ...DEFAULT_INSTALLATION, settings }, off).hooks).toEqual([]);
  });
});

test("row 64: a request without an answer in time is refused if the node could be protected", async () => {
  const asked = await askGuard(creating({ nodeName: "w-0" }), {
    fact: () => ({ failed: "request deadline exceeded" }),
  });
  expect(asked).toMatchObject({ allowed: false, code: 503 });
});

test("row 71: a pod that would preempt on a protected node is steered away first", async () => {
  const spec = { priority: 1_000_000, tolerations: [{ operator: "Exists" }] };
  expect((await askGuard(creating(spec))).object["spec"]).toMatchObject(
    required(byLabel(CONTROL_PLANE_LABEL, "DoesNotExist")),
  );
});

test("row 77: 10,000 nodes and a large pod", async () => {
  const nodes = Array.from({ length: 10_000 }, (_, i) => worker(`w-${i}`, { zone: `z${i % 7}` }));
  const terms = Array.from({ length: 100 }, (_, i) => byLabel("zone", "In", `x${i}`, "y"));
  const cluster = { nodes: [...nodes, controlPlaneNode("cp-0")] };
  const { allowed } = await askGuard(
    creating({ ...required(...terms), tolerations: [{ operator: "Exists" }] }),
    cluster,
  );
  expect(allowed).toBe(true);
  expect((await askGuard(binding("cp-0"), cluster)).allowed).toBe(false);
});
