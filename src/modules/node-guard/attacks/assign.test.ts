import { describe, expect, test } from "vitest";
import {
  askGuard,
  binding,
  type Cluster,
  CONTROL_PLANE_LABEL,
  controlPlaneNode,
  creating,
  GROUP,
  MALLORY,
  NODES,
  NOW,
  podOf,
  SCHEDULER,
  user,
  worker,
} from "../../../../test/builders/guard.ts";
import { requestFor } from "../../../../test/builders/request.ts";
import type { AdmissionRequest } from "../../../core/decision/request.ts";
import type { JsonObject } from "../../../core/json.ts";

/** Refused with 403 by this rule, or admitted. */
type Expected = "assign" | "bind" | "retain" | "allow";

type Row = readonly [
  row: string,
  what: string,
  request: AdmissionRequest,
  expected: Expected,
  cluster?: Cluster,
];

const ON = { nodeName: "cp-0" };
const exact: Cluster = { groups: [{ ...GROUP, serviceAccountScope: "Exact" }] };
const kubeSystem = { namespace: "kube-system" };
const uid = (username: string, ...groups: string[]) => creating(ON, user(username, ...groups));
const mirror = { annotations: { "kubernetes.io/config.mirror": "x" } };
const kubelet = (name: string) => user(`system:node:${name}`, "system:nodes");
const podInKubeSystem = (serviceAccountName: string) =>
  podOf({ serviceAccountName }, { ...kubeSystem, uid: "uid-of-web" });
const soon = {
  ...worker("w-9"),
  metadata: { name: "w-9", labels: {}, creationTimestamp: new Date(NOW - 5_000).toISOString() },
};
const two: Cluster = {
  groups: [
    GROUP,
    {
      name: "Infra",
      mode: "Enable",
      labelSelector: { matchLabels: { infra: "" } },
      authorizedUsers: ["mallory", "team-a/default"],
    },
  ],
  nodes: [controlPlaneNode("cp-0", { infra: "" })],
};

const ROWS: readonly Row[] = [
  ["1", "nodeName of a control-plane node", creating(ON), "assign"],
  ["1", "nodeName of a worker", creating({ nodeName: "w-0" }), "allow"],
  ["2", "generateName", creating(ON, MALLORY, { name: undefined, generateName: "web-" }), "assign"],
  ["3", "a listed controller for a pod that is not", creating(ON, SCHEDULER), "assign"],
  ["4", "an own operator", uid("system:serviceaccount:tekton:operator"), "assign"],
  ["5", "binds its own pod", binding("cp-0", MALLORY), "bind"],
  ["6", "binds at the legacy URL", binding("cp-0", MALLORY, { legacy: true }), "bind"],
  ["7", "the scheduler binds a pod that is not authorised", binding("cp-0"), "bind"],
  ["7", "the scheduler binds it to a worker", binding("w-0"), "allow"],
  [
    "8",
    "a second scheduler binds an authorised pod",
    binding("cp-0", user("other-scheduler"), kubeSystem),
    "bind",
  ],
  ["8", "the scheduler binds an authorised pod", binding("cp-0", SCHEDULER, kubeSystem), "allow"],
  ["9", "a target without a kind", binding({ name: "cp-0" }), "bind"],
  ["10", "a target in upper case", binding("CP-0"), "bind"],
  ["10", "a target with a space", binding("cp-0 "), "bind"],
  ["10", "a target with a dot", binding("cp-0."), "bind"],
  [
    "12",
    "another pod of the same name, in Exact scope",
    binding("cp-0", SCHEDULER, { ...kubeSystem, uid: "old" }),
    "bind",
    { ...exact, pods: [podInKubeSystem("default")] },
  ],
  [
    "12",
    "the very pod, in Exact scope",
    binding("cp-0", SCHEDULER, kubeSystem),
    "allow",
    { ...exact, pods: [podInKubeSystem("default")] },
  ],
  [
    "12",
    "a Binding without uid, in Exact scope",
    binding("cp-0", SCHEDULER, { ...kubeSystem, uid: null }),
    "bind",
    { ...exact, pods: [podInKubeSystem("default")] },
  ],
  ["12", "a deleted pod, in Exact scope", binding("cp-0", SCHEDULER, kubeSystem), "bind", exact],
  [
    "32",
    "kubectl debug node/cp-0",
    creating({ ...ON, tolerations: [{ operator: "Exists" }], hostPID: true }, MALLORY, {
      labels: { "app.kubernetes.io/managed-by": "kubectl-debug" },
    }),
    "assign",
  ],
  ["33", "the same by an emergency identity", creating(ON, user("sre"), { namespace: "default" }), "allow"],
  [
    "34",
    "oc debug in a namespace of any name",
    creating(ON, user("sre"), { namespace: "openshift-debug-x7k2p" }),
    "allow",
  ],
  [
    "34",
    "must-gather by a prefix entry",
    creating(ON, user("sre"), { namespace: "openshift-must-gather-abc" }),
    "allow",
    { groups: [{ ...GROUP, emergencyUsers: [], workloads: ["openshift-must-gather-*/default"] }] },
  ],
  ["35", "the mirror annotation", creating(ON, MALLORY, mirror), "assign"],
  ["36", "the kubelet of another node", creating(ON, kubelet("w-1"), mirror), "assign"],
  ["37", "the kubelet's own mirror pod", creating(ON, kubelet("cp-0"), mirror), "allow"],
  ["38", "the kubelet's pod that is not a mirror", creating(ON, kubelet("cp-0")), "assign"],
  ["39", "a kubelet's name without its group", creating(ON, user("system:node:cp-0"), mirror), "assign"],
  [
    "39",
    "a kubelet's group without its name",
    creating(ON, user("mallory", "system:nodes"), mirror),
    "assign",
  ],
  [
    "40",
    "ownerReferences to a DaemonSet and a Node",
    creating(ON, MALLORY, {
      ownerReferences: [
        { apiVersion: "apps/v1", kind: "DaemonSet", name: "kube-proxy", uid: "u", controller: true },
      ],
    }),
    "assign",
  ],
  [
    "41",
    "a priority class, labels, config.source",
    creating({ ...ON, priorityClassName: "system-node-critical" }, MALLORY, {
      labels: { "openshift.io/run-level": "0" },
      annotations: { "kubernetes.io/config.source": "file" },
    }),
    "assign",
  ],
  [
    "42",
    "a service account of a listed name in another namespace",
    creating({ ...ON, serviceAccountName: "default" }),
    "assign",
  ],
  [
    "43",
    "only the deprecated serviceAccount",
    creating({ ...ON, serviceAccount: "default" }, user("sre"), kubeSystem),
    "allow",
    exact,
  ],
  [
    "43",
    "only the deprecated serviceAccount, another one",
    creating({ ...ON, serviceAccount: "other" }, SCHEDULER, kubeSystem),
    "assign",
    exact,
  ],
  [
    "44",
    "a control-plane selector in an authorised namespace",
    creating({ nodeSelector: { [CONTROL_PLANE_LABEL]: "" } }, MALLORY, kubeSystem),
    "allow",
  ],
  ["45", "the same with nodeName", creating(ON, MALLORY, kubeSystem), "assign"],
  [
    "46",
    "a new service account in an authorised namespace",
    creating({ ...ON, serviceAccountName: "new" }, SCHEDULER, kubeSystem),
    "allow",
  ],
  [
    "46",
    "the same in Exact scope",
    creating({ ...ON, serviceAccountName: "new" }, SCHEDULER, kubeSystem),
    "assign",
    exact,
  ],
  ["48", "a recreated authorised namespace", binding("cp-0", SCHEDULER, kubeSystem), "allow"],
  [
    "49",
    "an impersonated scheduler is evaluated as the scheduler",
    binding("cp-0", { ...SCHEDULER, extra: {} }, kubeSystem),
    "allow",
  ],
  [
    "50",
    "a token of a listed service account",
    creating(
      ON,
      {
        ...user("system:serviceaccount:kube-system:default"),
        extra: { "authentication.kubernetes.io/pod-name": ["x"] },
      },
      kubeSystem,
    ),
    "allow",
  ],
  ["51", "another case", creating(ON, user("System:kube-scheduler"), kubeSystem), "assign"],
  ["51", "a leading space", creating(ON, user(" system:kube-scheduler"), kubeSystem), "assign"],
  ["51", "a homoglyph", creating(ON, user("system:kube-sсheduler"), kubeSystem), "assign"],
  [
    "52",
    "a user named as an entry with a slash",
    creating(ON, user("kube-system/default"), kubeSystem),
    "assign",
  ],
  [
    "53",
    "a service account with three parts",
    creating(ON, user("system:serviceaccount:kube-system:default:x"), kubeSystem),
    "assign",
  ],
  [
    "53",
    "a service account with an empty part",
    creating(ON, user("system:serviceaccount::default"), kubeSystem),
    "assign",
  ],
  ["54", "a group named as a listed user", creating(ON, user("mallory", "sre"), kubeSystem), "assign"],
  ["58", "a node that has not joined", creating({ nodeName: "cp-3" }), "assign"],
  [
    "59",
    "a new node, with a grace time",
    creating({ nodeName: "w-9" }),
    "assign",
    { nodes: [...NODES, soon], groups: [{ ...GROUP, newNodeGraceSeconds: 60 }] },
  ],
  ["59", "a new node, without", creating({ nodeName: "w-9" }), "allow", { nodes: [...NODES, soon] }],
  [
    "60",
    "a node that came back without its label",
    creating({ nodeName: "cp-0" }),
    "allow",
    { nodes: [worker("cp-0")] },
  ],
  [
    "61",
    "the cache is behind a new label",
    creating({ nodeName: "w-0" }),
    "assign",
    { live: [controlPlaneNode("w-0")] },
  ],
  ["70", "a pod of the name of an evicted one", creating(ON, MALLORY, { name: "etcd-cp-0" }), "assign"],
  ["72", "authorised in one group of two", creating(ON), "assign", two],
  ["75", "system:masters", creating(ON, user("admin", "system:masters")), "assign"],
];

describe("attempts to assign a pod to a protected node", () => {
  test.each(ROWS.map(([row, what, ...rest]) => [row, what, rest] as const))(
    "row %s: %s",
    async (_row, _what, [request, expected, cluster]) => {
      const { allowed, code, rules, message, audit } = await askGuard(request, cluster);
      if (expected === "allow") {
        expect({ allowed, rules }).toEqual({ allowed: true, rules: [] });
        return;
      }
      expect({ allowed, code }).toEqual({ allowed: false, code: 403 });
      expect(new Set(rules)).toEqual(new Set([expected]));
      expect(message).toContain("ControlPlane");
      expect(audit["node-guard.verdict"]).toContain("deny");
    },
  );
});

test("row 74: a dry run gets the same verdict and leaves no event", async () => {
  for (const [, , request, expected, cluster] of ROWS) {
    const { allowed, events } = await askGuard({ ...request, dryRun: true }, cluster);
    expect(allowed).toBe(expected === "allow");
    expect(events).toEqual([]);
  }
});

test("row 33: a vouched pod is audited as such", async () => {
  const { audit } = await askGuard(creating(ON, user("sre"), { namespace: "default" }));
  expect(audit).toMatchObject({
    "node-guard.rule": "vouched",
    "node-guard.entry": "sre",
    "node-guard.verdict": "allow",
  });
  // Only if a node is assigned at CREATE.
  expect((await askGuard(binding("cp-0", user("sre")))).allowed).toBe(false);
});

test("row 11: the name in the URL counts, and without one the object's", async () => {
  const { message } = await askGuard({ ...binding("cp-0"), name: "from-url" });
  expect(message).toContain("pod team-a/from-url");
  expect((await askGuard({ ...binding("cp-0", SCHEDULER, { legacy: true }), name: "" })).message).toContain(
    "pod team-a/web",
  );
});

test("row 47: a namespace with an authorised prefix is authorised, wherever it may be created", async () => {
  const groups = [{ ...GROUP, workloads: ["openshift-must-gather-*/default"] }];
  expect(
    (await askGuard(binding("cp-0", SCHEDULER, { namespace: "openshift-must-gather-evil" }), { groups }))
      .allowed,
  ).toBe(true);
});

describe("row 73: an override counts between its times", () => {
  const override = (from: number, until: number, mode: string): JsonObject => ({
    apiVersion: "usher.dev/v1alpha1",
    kind: "NodeGuardOverride",
    metadata: { name: "night" },
    spec: {
      group: "ControlPlane",
      mode,
      from: new Date(from).toISOString(),
      until: new Date(until).toISOString(),
      reason: "repair",
    },
  });
  const HOUR = 3_600_000;

  test.each([
    ["expired", override(NOW - 2 * HOUR, NOW - HOUR, "Disable"), false],
    ["not begun", override(NOW + HOUR, NOW + 2 * HOUR, "Disable"), false],
    ["to Inform", override(NOW - HOUR, NOW + HOUR, "Inform"), true],
    ["to Disable", override(NOW - HOUR, NOW + HOUR, "Disable"), true],
  ])("row 73: %s", async (_what, object, allowed) => {
    const asked = await askGuard(creating(ON), { objects: [object] });
    expect(asked.allowed).toBe(allowed);
    expect(asked.audit["node-guard.rule"]).toBe(allowed ? "override" : "assign");
  });
});

test("row 57: a kubelet removes a label of its own node that the group selects by", async () => {
  const groups = [{ ...GROUP, labelSelector: { matchLabels: { tier: "cp" } } }];
  const before = worker("n", { tier: "cp" });
  const request = requestFor(worker("n"), { operation: "UPDATE", oldObject: before, userInfo: kubelet("n") });
  const { allowed, rules } = await askGuard(request, { groups, nodes: [before] });
  expect({ allowed, rules }).toEqual({ allowed: false, rules: ["node-labels"] });
});
