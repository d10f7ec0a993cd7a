// The reading commands of node-guard, over the example that the guide uses.
import { expect, test } from "vitest";
import { at, type Json, listAt, stringAt } from "../../src/core/json.ts";
import { folder, usher } from "./usher.ts";

const SOURCE = ["--source", "examples/node-guard"];

async function json(...args: readonly string[]): Promise<{ code: number | null; data: Json; err: string }> {
  const { code, out, err } = await usher(["node-guard", ...args, "-o", "json"]);
  return { code, data: JSON.parse(out || "null") as Json, err };
}

test("list shows every group with its mode, nodes, and entries with their origin", async () => {
  const { code, data, err } = await json(
    "list",
    ...SOURCE,
    "--feature-gates",
    "OpenShiftNodeSchedulingPolicy=true",
  );
  expect(code, err).toBe(0);
  const [group] = listAt(data, "groups");
  expect(group).toMatchObject({
    name: "ControlPlane",
    mode: "Enable",
    effectiveMode: "Enable",
    because: expect.stringContaining("NodeSchedulingPolicy"),
    nodes: ["cp-0"],
  });
  const entries = listAt(group, "entries");
  for (const entry of [
    { entry: "system:kube-scheduler", as: "actor", origin: "built-in" },
    { entry: "batch/batch-scheduler", as: "actor", origin: "NodeSchedulingPolicy" },
    { entry: "backup/agent", as: "pod", origin: "NodeSchedulingPolicy" },
    { entry: "sre", as: "emergency", origin: "NodeSchedulingPolicy" },
  ])
    expect(entries).toContainEqual(entry);
});

test("list prints a table, too, and reports that the gate is off", async () => {
  const { code, out, err } = await usher(["node-guard", "list", ...SOURCE]);
  expect(code).toBe(0);
  expect(out).toMatch(/^GROUP +MODE +EFFECTIVE +NODES +ENTRY +AS +ORIGIN\nControlPlane +Enable +Disable +1 /);
  expect(out).toMatch(/ControlPlane: Disable, because feature gate OpenShiftNodeSchedulingPolicy is off\n$/);
  expect(err).toContain("feature gate OpenShiftNodeSchedulingPolicy is off");
});

test("list suggests the emergency entries that a group lacks, with oc where the list is OpenShift's", async () => {
  const version = "{ apiVersion: config.openshift.io/v1, kind: ClusterVersion, metadata: { name: version } }";
  const { err } = await usher(["node-guard", "list", "--source", folder({ "version.yaml": version })]);
  expect(err).toContain(
    'ControlPlane: no emergency entry: in Enable oc debug node/… and oc adm must-gather --node-name are refused to every user, also to system:admin and kube:admin; list the users that debug nodes, such as emergencyUsers: ["system:admin", "kube:admin"]',
  );
  const listed = await usher(["node-guard", "list", ...SOURCE]);
  expect(listed.err).not.toContain("no emergency entry");
});

test("inventory shows every pod on a protected node, and the entry that authorises it", async () => {
  const { code, data, err } = await json("inventory", ...SOURCE);
  expect(code, err).toBe(0);
  const common = { node: "cp-0", group: "ControlPlane", reviewed: false };
  expect(listAt(data, "pods")).toEqual([
    {
      ...common,
      namespace: "backup",
      name: "agent-x7k2p",
      serviceAccount: "agent",
      authorized: true,
      by: "backup/agent",
    },
    {
      ...common,
      namespace: "team-a",
      name: "report-0",
      serviceAccount: "report",
      authorized: false,
      by: null,
    },
  ]);
});

test("inventory --reviewed exits 1 while a pod is missing from the reviewed list, and 2 for a bad line", async () => {
  const reviewed = (text: string) => `${folder({ "reviewed.txt": text })}/reviewed.txt`;
  const some = await json("inventory", ...SOURCE, "--reviewed", reviewed("# by us\n\nbackup/agent\n"));
  expect(some.code).toBe(1);
  expect(listAt(some.data, "pods").map((pod) => at(pod, "reviewed"))).toEqual([true, false]);
  const all = await json("inventory", ...SOURCE, "--reviewed", reviewed("backup/agent\nteam-a/report\n"));
  expect(all.code).toBe(0);
  const wrong = await usher([
    "node-guard",
    "inventory",
    ...SOURCE,
    "--reviewed",
    reviewed("backup/agent\nreport"),
  ]);
  expect(wrong.code).toBe(2);
  expect(wrong.err).toContain('reviewed.txt:2: must be namespace/serviceAccount, got "report"');
});

test("reach shows which users may create pods in an authorised namespace, and omits the others", async () => {
  const { code, data, err } = await json("reach", ...SOURCE);
  expect(code, err).toBe(0);
  expect(listAt(data, "subjects")).toEqual([
    {
      subject: { kind: "Group", name: "backup-team" },
      may: ["create deployments.apps"],
      namespaces: ["backup"],
      groups: ["ControlPlane"],
      by: "RoleBinding backup/backup-team",
    },
  ]);
});

test("reach exits 1 where a role could not be found", async () => {
  const binding = {
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "ClusterRoleBinding",
    metadata: { name: "lost" },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "gone" },
    subjects: [{ kind: "User", name: "alice" }],
  };
  const { code, err } = await json("reach", "--source", folder({ "binding.json": JSON.stringify(binding) }));
  expect(code).toBe(1);
  expect(err).toContain("ClusterRoleBinding lost: its role was not found");
});

test("learn reads an audit log without any source, proposes assigners and workloads, and writes nothing", async () => {
  const { code, data, err } = await json("learn", "--audit-log", "examples/node-guard/audit.log");
  expect(code, err).toBe(1);
  expect(listAt(data, "entries")).toEqual([
    {
      group: "ControlPlane",
      list: "workloads",
      entry: "monitoring/default",
      count: 2,
      first: "2026-11-16T08:00:00.000Z",
      last: "2026-11-16T09:30:00.000Z",
    },
    {
      group: "ControlPlane",
      list: "assigners",
      entry: "batch/batch-scheduler",
      count: 1,
      first: "2026-11-16T09:00:00.000Z",
      last: "2026-11-16T09:00:00.000Z",
    },
  ]);
});

test("learn reads the records of replicas, here from files", async () => {
  const fields = { group: "ControlPlane", actor: "", namespace: "shop", serviceAccount: "web" };
  const text = `${JSON.stringify([fields, 7, 0, 1_000])}\nbroken\n`;
  const map = {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: "usher-observations-node-guard", namespace: "usher-system" },
    data: { observations: text },
  };
  const { code, data, err } = await json("learn", "--source", folder({ "map.json": JSON.stringify(map) }));
  expect(code, err).toBe(1);
  expect(listAt(data, "entries").map((one) => `${stringAt(one, "entry")} ${at(one, "count")}`)).toEqual([
    "shop/web 7",
  ]);
  const none = await json("learn", ...SOURCE);
  expect([none.code, listAt(none.data, "entries")]).toEqual([0, []]);
});

test("learn without a source and without a log says which flags to pass", async () => {
  const { code, err } = await usher(["node-guard", "learn"]);
  expect(code).toBe(2);
  expect(err).toMatch(/--source|--cluster/);
});

test("a review refuses a pod on a protected node, once", async () => {
  const config = ["--config", "examples/configurations/node-guard.yaml"];
  const args = ["review", "examples/pods/on-control-plane.yaml", ...SOURCE, ...config, "-o", "json"];
  const { code, out, err } = await usher(args);
  expect(code, err).toBe(1);
  const [result] = listAt(JSON.parse(out) as Json, "results");
  expect(listAt(result, "violations")).toMatchObject([
    { policy: "ControlPlane", rule: "assign", code: "USHER-G01" },
  ]);
  expect(at(result, "audit", "node-guard.verdict")).toBe("deny");
});
