import { describe, expect, test } from "vitest";
import {
  askGuard,
  binding,
  byLabel,
  byName,
  type Cluster,
  CONTROL_PLANE_LABEL,
  controlPlaneNode,
  creating,
  DAEMON_SET_CONTROLLER,
  GROUP,
  MALLORY,
  NODES,
  required,
  TAINT,
  updating,
  user,
  worker,
} from "../../../../test/builders/guard.ts";
import { requestFor } from "../../../../test/builders/request.ts";
import type { AdmissionRequest } from "../../../core/decision/request.ts";
import { at, type Json, type JsonObject } from "../../../core/json.ts";
import { tolerates } from "../../../core/kubernetes/tolerations.ts";
import { BUILT_IN_WORKLOADS, type WorkloadKind } from "../../../core/kubernetes/workloads.ts";

type Row = readonly [row: string, what: string, request: AdmissionRequest, rule: string, cluster?: Cluster];

const CP = { nodeSelector: { [CONTROL_PLANE_LABEL]: "" } };
const cpTerm = byLabel(CONTROL_PLANE_LABEL, "Exists");
const GATED = { schedulingGates: [{ name: "g" }] };
const STEERING_OFF: Cluster = { groups: [{ ...GROUP, steering: "Disabled" }] };
const zone: Cluster = { nodes: [controlPlaneNode("cp-0", { zone: "a" }), worker("w-0", { zone: "b" })] };
const tainted = controlPlaneNode("cp-0", {}, [{ key: "maintenance", effect: "NoExecute" }]);
const onTainted: Cluster = { nodes: [tainted] };
const tolerating = (tolerationSeconds?: number): JsonObject => ({
  nodeName: "cp-0",
  tolerations: [
    {
      key: "maintenance",
      operator: "Exists",
      effect: "NoExecute",
      ...(tolerationSeconds === undefined ? {} : { tolerationSeconds }),
    },
  ],
});

const EXISTS: JsonObject = { tolerations: [{ operator: "Exists" }] };
const NAMED = { key: CONTROL_PLANE_LABEL, operator: "Exists" };
const WORKERS = required(byLabel("kubernetes.io/hostname", "In", "w-0", "w-1"));
const other = { key: "another", operator: "Exists" };
const CORDON = { key: "node.kubernetes.io/unschedulable", effect: "NoSchedule" };
const CORDONED: Cluster = { nodes: [controlPlaneNode("cp-0", {}, [TAINT, CORDON]), worker("w-0")] };
const JOB = {
  ownerReferences: [{ apiVersion: "batch/v1", kind: "Job", name: "j", uid: "u", controller: true }],
};
const manyTerms = (count: number) =>
  Array.from({ length: count }, (_, i) => byLabel(`k${i}`, "DoesNotExist"));

function inSystem(request: AdmissionRequest): AdmissionRequest {
  return { ...request, namespace: "kube-system" };
}

const ROWS: readonly Row[] = [
  ["15", "nodeSelector of the control-plane label", creating(CP), "exclusive"],
  ["16", "pinned by name, as a DaemonSet's pods are", creating(required(byName("cp-0"))), "pinned"],
  ["16", "pinned to an unknown node", creating(required(byName("cp-9"))), "pinned"],
  ["16", "pinned to a worker", creating(required(byName("w-0"))), "allow"],
  ["16", "pinned to either", creating(required(byName("cp-0"), byName("w-0"))), "allow"],
  [
    "17",
    "a term for workers beside one for the control plane",
    creating(required(byLabel("kubernetes.io/hostname", "In", "w-0"), cpTerm)),
    "allow",
  ],
  ["18", "an empty term beside one for the control plane", creating(required({}, cpTerm)), "exclusive"],
  [
    "19",
    "preferred affinity",
    creating({
      affinity: {
        nodeAffinity: {
          preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 100, preference: cpTerm }],
        },
      },
    }),
    "allow",
  ],
  ["20", "the hostname", creating({ nodeSelector: { "kubernetes.io/hostname": "cp-0" } }), "exclusive"],
  ["21", "the label while no such node is known", creating(CP), "implied", { nodes: [worker("w-0")] }],
  [
    "21",
    "the same in required affinity",
    creating(required(byLabel(CONTROL_PLANE_LABEL, "In", "x"))),
    "implied",
    { nodes: [worker("w-0")] },
  ],
  [
    "22",
    "the DaemonSet controller's pod for a control-plane node",
    creating(required(byName("cp-0")), DAEMON_SET_CONTROLLER),
    "allow",
  ],
  [
    "22",
    "its imitation by another, with the same owner",
    creating(required(byName("cp-0")), MALLORY, {
      ownerReferences: [{ apiVersion: "apps/v1", kind: "DaemonSet", name: "d", uid: "u", controller: true }],
    }),
    "pinned",
  ],
  ["23", "a gated pod gets a selector", updating(GATED, { ...GATED, ...CP }), "exclusive"],
  [
    "24",
    "a gate is removed from a pod that became exclusive",
    updating({ ...GATED, ...CP }, CP),
    "exclusive",
  ],
  ["25", "a pending pod gets a toleration", updating({}, EXISTS), "reachable"],
  ["25", "it gets one that no protected node has", updating({}, { tolerations: [other] }), "allow"],
  ["25", "it is authorised", inSystem(updating({}, EXISTS)), "allow"],
  ["25", "an authorised user adds it", updating({}, EXISTS, user("sre")), "allow"],
  ["25", "the same in a pod of a Job", updating({}, EXISTS, user("sre"), [JOB, JOB]), "allow"],
  ["25", "the group does not steer", updating({}, EXISTS), "allow", STEERING_OFF],
  ["25", "it selects workers alone", updating(WORKERS, { ...WORKERS, ...EXISTS }), "allow"],
  [
    "25",
    "it tolerated the taint before",
    updating(EXISTS, { tolerations: [{ operator: "Exists" }, other] }),
    "allow",
  ],
  [
    "82",
    "a pending pod gets a toleration while the protected node is cordoned",
    updating({}, { tolerations: [NAMED] }),
    "reachable",
    CORDONED,
  ],
  [
    "78",
    "required affinity of 257 terms",
    creating({ ...EXISTS, ...required(...manyTerms(257)) }),
    "reachable",
  ],
  [
    "78",
    "the same by the controller of a Job, which is authorised",
    creating({ ...EXISTS, ...required(...manyTerms(257)) }, user("sre"), JOB),
    "reachable",
  ],
  [
    "78",
    "one term of 3,000 requirements",
    creating({
      ...EXISTS,
      ...required({
        matchExpressions: Array.from({ length: 3_000 }, (_, i) => ({
          key: `k${i}`,
          operator: "DoesNotExist",
        })),
      }),
    }),
    "reachable",
  ],
  [
    "78",
    "3,000 tolerations",
    creating({ tolerations: Array.from({ length: 3_000 }, (_, i) => ({ ...other, key: `k${i}` })) }),
    "reachable",
  ],
  [
    "26",
    "a pod on a protected node gets a toleration",
    updating({ nodeName: "cp-0" }, tolerating()),
    "retain",
    onTainted,
  ],
  ["26", "it gets one for a while", updating({ nodeName: "cp-0" }, tolerating(60)), "retain", onTainted],
  ["26", "its time is extended", updating(tolerating(60), tolerating(600)), "retain", onTainted],
  ["26", "its time is removed", updating(tolerating(60), tolerating()), "retain", onTainted],
  ["26", "its time is shortened", updating(tolerating(60), tolerating(6)), "allow", onTainted],
  ["26", "on a worker", updating({ nodeName: "cp-0" }, tolerating()), "allow", { nodes: [worker("cp-0")] }],
  [
    "27",
    "labels and finalizers of a pod in the wrong place",
    updating({ nodeName: "cp-0" }, { nodeName: "cp-0" }, MALLORY, [
      { finalizers: ["x/y"] },
      { labels: { a: "b" } },
    ]),
    "allow",
  ],
  [
    "27",
    "a pod that is being deleted",
    updating({}, CP, MALLORY, [{}, { deletionTimestamp: "2026-11-16T12:00:00Z" }]),
    "allow",
  ],
  [
    "76",
    "the old object is bad, the new one is fine",
    updating({ ...GATED, ...CP }, { ...GATED, nodeSelector: { a: "b" } }),
    "allow",
  ],
  ["76", "the old object is fine, the new one is bad", updating(GATED, { ...GATED, ...CP }), "exclusive"],
];

describe("constraints that select protected nodes", () => {
  test.each(ROWS.map(([row, what, ...rest]) => [row, what, rest] as const))(
    "row %s: %s",
    async (_row, _what, [request, rule, cluster]) => {
      const { allowed, code, rules, message } = await askGuard(request, cluster);
      if (rule === "allow") {
        expect({ allowed, rules }).toEqual({ allowed: true, rules: [] });
        return;
      }
      expect({ allowed, code, rules }).toEqual({ allowed: false, code: 403, rules: [rule] });
      expect(message).toMatch(/ControlPlane.*not authorised.*ask a cluster administrator/);
    },
  );

  test.each(
    ROWS.filter(([, , , rule]) => rule !== "allow").map(([row, what, ...rest]) => [row, what, rest] as const),
  )("row %s: %s, in Inform", async (_row, _what, [request, rule, cluster]) => {
    const groups = [{ ...GROUP, mode: "Inform" }];
    const asked = await askGuard(request, { ...cluster, groups });
    expect({ allowed: asked.allowed, rules: asked.rules }).toEqual({ allowed: true, rules: [rule] });
    expect(asked.warnings.every((text) => text.length <= 120)).toBe(true);
    expect(asked.warnings).toHaveLength(1);
    expect(asked.events).toHaveLength(1);
    expect(asked.audit).toMatchObject({
      "node-guard.mode": "Inform",
      "node-guard.verdict": "would-deny",
      "node-guard.claim": rule,
    });
  });
});

test("row 13: a toleration alone is admitted, and the bind decides", async () => {
  const spec = { tolerations: [{ operator: "Exists" }] };
  const { allowed, patched, object } = await askGuard(creating(spec));
  expect({ allowed, patched }).toEqual({ allowed: true, patched: true });
  expect(object).toMatchObject({ spec: required(byLabel(CONTROL_PLANE_LABEL, "DoesNotExist")) });
  const unsteered = await askGuard(creating(spec), STEERING_OFF);
  expect(unsteered).toMatchObject({ allowed: true, patched: false });
  expect((await askGuard(binding("cp-0"), STEERING_OFF)).allowed).toBe(false);
});

test("row 14: tolerations without a key, by either label's key", async () => {
  const taint = (key: string) => ({ key, effect: "NoSchedule" });
  expect(tolerates({ operator: "Exists" }, taint(CONTROL_PLANE_LABEL))).toBe(true);
  for (const key of [CONTROL_PLANE_LABEL, "node-role.kubernetes.io/master"]) {
    const nodes = [controlPlaneNode("cp-0", {}, [taint(key)]), worker("w-0")];
    for (const toleration of [
      { operator: "Exists" },
      { key, operator: "Exists" },
      { key, effect: "NoSchedule" },
    ])
      expect(await askGuard(creating({ tolerations: [toleration] }), { nodes })).toMatchObject({
        patched: true,
      });
    const other = { key: "another", operator: "Exists" };
    expect(await askGuard(creating({ tolerations: [other] }), { nodes })).toMatchObject({ patched: false });
  }
});

describe("workloads that could be scheduled onto protected nodes", () => {
  const kinds = BUILT_IN_WORKLOADS.filter(({ template }) => template.length > 0);
  const workload = ({ group, version, kind, template }: WorkloadKind, spec: JsonObject): JsonObject => ({
    apiVersion: group === "" ? version : `${group}/${version}`,
    kind,
    metadata: { name: "own", namespace: "team-a" },
    ...(template.reduceRight<Json>((inner, step) => ({ [step]: inner }), { spec }) as JsonObject),
  });
  const asked = (kind: WorkloadKind, spec: JsonObject, before?: JsonObject, cluster?: Cluster) =>
    askGuard(
      requestFor(workload(kind, spec), {
        userInfo: MALLORY,
        ...(before === undefined ? {} : { operation: "UPDATE", oldObject: workload(kind, before) }),
      }),
      cluster,
    );
  const tooMany = { ...EXISTS, ...required(...manyTerms(257)) };
  const [daemonSet] = kinds.filter(({ kind }) => kind === "DaemonSet") as [WorkloadKind];
  const templateOf = (object: JsonObject) => at(object, "spec", "template", "spec");

  test.each(kinds.map((one) => [one.kind, one] as const))(
    "row 78: the template of a %s that is too large to steer is refused at both operations, and reported in Inform",
    async (_kind, one) => {
      const informs: Cluster = { groups: [{ ...GROUP, mode: "Inform" }] };
      for (const before of [undefined, {}]) {
        expect(await asked(one, tooMany, before)).toMatchObject({ allowed: false, rules: ["reachable"] });
        expect(await asked(one, tooMany, before, informs)).toMatchObject({
          allowed: true,
          rules: ["reachable"],
        });
        expect(await asked(one, tooMany, before, STEERING_OFF)).toMatchObject({ allowed: true, rules: [] });
      }
    },
  );

  test.each([
    ["gets a toleration", {}],
    [
      "loses the affinity that kept it off",
      { ...EXISTS, ...required(byLabel(CONTROL_PLANE_LABEL, "DoesNotExist")) },
    ],
    ["loses its nodeName", { ...EXISTS, nodeName: "w-0" }],
  ])("row 80: a DaemonSet that %s by an update is steered", async (_what, before) => {
    const { allowed, object } = await asked(daemonSet, EXISTS, before);
    expect(allowed).toBe(true);
    expect(templateOf(object)).toMatchObject(required(byLabel(CONTROL_PLANE_LABEL, "DoesNotExist")));
  });

  test("row 81: a DaemonSet only for protected nodes is refused, because its pods are not evaluated before the bind", async () => {
    for (const before of [undefined, {}])
      expect(await asked(daemonSet, { ...EXISTS, ...CP }, before)).toMatchObject({
        allowed: false,
        rules: ["reachable"],
      });
    const older = await asked(daemonSet, { ...EXISTS, ...CP, hostNetwork: true }, { ...EXISTS, ...CP });
    expect(older).toMatchObject({ allowed: true, patched: false });
    const system = requestFor(workload(daemonSet, { ...EXISTS, ...CP }), { userInfo: MALLORY });
    expect(await askGuard({ ...system, namespace: "kube-system" })).toMatchObject({
      allowed: true,
      rules: [],
    });
  });

  test("row 82: a pod that is created while the protected node is cordoned is steered off it", async () => {
    expect(await askGuard(creating({ tolerations: [NAMED] }), CORDONED)).toMatchObject({ patched: true });
  });

  test.each([
    ["gets a toleration", GATED, { ...GATED, ...EXISTS }],
    ["loses its gate", { ...GATED, ...EXISTS }, EXISTS],
  ])("row 83: a gated pod that %s is steered", async (_what, before, after) => {
    const { allowed, object } = await askGuard(updating(before, after));
    expect(allowed).toBe(true);
    expect(object["spec"]).toMatchObject(required(byLabel(CONTROL_PLANE_LABEL, "DoesNotExist")));
  });

  describe("row 83: a gated pod, for which the API server accepts neither more terms nor fewer", () => {
    const guarded = (count: number): Cluster => ({
      groups: [{ ...GROUP, labelSelector: { matchLabels: { a: "b", c: "d" } } }],
      nodes: [
        ...Array.from({ length: count }, (_, i) => controlPlaneNode(`cp-${i}`, { a: "b", c: "d" })),
        controlPlaneNode("other", { a: "b", c: "d", zone: "a" }),
        worker("w-0"),
      ],
    });
    const terms = required(byLabel("zone", "DoesNotExist"));
    const away = required({
      ...byLabel("zone", "DoesNotExist"),
      matchFields: ["cp-0", "cp-1"].map((name) => ({
        key: "metadata.name",
        operator: "NotIn",
        values: [name],
      })),
    });

    test.each([
      ["gets a toleration", { ...GATED, ...terms }, { ...GATED, ...terms, ...EXISTS }],
      [
        "is older than the group, and loses its gate",
        { ...GATED, ...terms, ...EXISTS },
        { ...terms, ...EXISTS },
      ],
    ])("is steered by the names of nodes if it %s", async (_what, before, after) => {
      const { allowed, object } = await askGuard(updating(before, after), guarded(2));
      expect(allowed).toBe(true);
      expect(object["spec"]).toMatchObject({ ...after, ...away });
      const again = updating(object["spec"] as JsonObject, { ...(object["spec"] as JsonObject), ...GATED });
      expect((await askGuard(again, guarded(2))).patched).toBe(false);
    });

    test("gets terms if it has none", async () => {
      expect(await askGuard(updating(GATED, { ...GATED, ...EXISTS }), guarded(2))).toMatchObject({
        allowed: true,
        patched: true,
      });
    });

    test("is refused if the names are too many", async () => {
      const update = updating({ ...GATED, ...terms, ...EXISTS }, { ...terms, ...EXISTS });
      expect((await askGuard(update, guarded(256))).allowed).toBe(true);
      expect(await askGuard(update, guarded(257))).toMatchObject({
        allowed: false,
        patched: false,
        rules: ["reachable"],
      });
    });
  });
});

describe("row 20b: only protected nodes fit today", () => {
  const request = creating({ nodeSelector: { zone: "a" }, tolerations: [{ operator: "Exists" }] });

  test.each([
    ["with steering", {}],
    ["without steering", STEERING_OFF],
    ["in Inform", { groups: [{ ...GROUP, mode: "Inform" }] }],
  ])("row 20b: admitted with a warning, %s", async (_what, cluster) => {
    const { allowed, warnings, events } = await askGuard(request, { ...zone, ...cluster });
    expect({ allowed, events }).toEqual({ allowed: true, events: [] });
    expect(warnings).toEqual([expect.stringMatching(/runs only on protected group ControlPlane.*USHER-G05/)]);
  });

  test("row 20b: the bind is refused", async () => {
    expect((await askGuard(binding("cp-0"), zone)).allowed).toBe(false);
  });
});

test("earlyRefusal: Warn admits and reports, and the bind is refused", async () => {
  const cluster = { groups: [{ ...GROUP, earlyRefusal: "Warn" }] };
  const { allowed, rules, warnings } = await askGuard(creating(CP), cluster);
  expect({ allowed, rules, count: warnings.length }).toEqual({
    allowed: true,
    rules: ["exclusive"],
    count: 1,
  });
  expect((await askGuard(binding("cp-0"), cluster)).allowed).toBe(false);
});

test("checkRequesterOnSelection also checks the sender", async () => {
  const request = creating(CP, MALLORY, { namespace: "kube-system" });
  expect((await askGuard(request)).allowed).toBe(true);
  const asked = await askGuard(request, { groups: [{ ...GROUP, checkRequesterOnSelection: true }] });
  expect(asked).toMatchObject({ allowed: false, rules: ["exclusive"] });
  expect(asked.message).toContain('user "mallory" is not authorised (namespace "kube-system" is)');
});

test("a node in a group that only informs is a node that the pod may run on", async () => {
  const groups = [
    GROUP,
    { name: "Infra", mode: "Inform", labelSelector: { matchLabels: { infra: "" } }, authorizedUsers: [] },
  ];
  const nodes = [controlPlaneNode("cp-0", { rack: "1" }), worker("i-0", { infra: "", rack: "1" })];
  const { allowed } = await askGuard(
    creating(required(byLabel("kubernetes.io/hostname", "In", "cp-0", "i-0"))),
    { groups, nodes },
  );
  expect(allowed).toBe(true);
});

test("nothing is read if the cache has everything", async () => {
  expect((await askGuard(creating(CP))).needs).toEqual([]);
  expect((await askGuard(binding("cp-0"))).needs).toEqual([]);
  expect((await askGuard(creating({ nodeName: "w-0" }))).needs).toHaveLength(1);
  expect((await askGuard(creating(CP), { nodes: NODES })).message).not.toContain("sre");
});
