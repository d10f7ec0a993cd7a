import { expect, test } from "vitest";
import { parse } from "yaml";
import { folder, usher } from "./usher.ts";

const GATE = ["--feature-gates", "OpenShiftNodeSchedulingPolicy=true"];

/** As the enhancement prints it. */
const SEED = `
   apiVersion: kubecontrolplane.config.openshift.io/v1
   kind: KubeAPIServerConfig
   admission:
     pluginConfig:
       scheduling.openshift.io/NodeSchedulingPolicy:
         configuration:
           apiVersion: scheduling.openshift.io/alphav1
           kind: NodeSchedulingPolicyConfig
           groups:
           - name: ControlPlane
             labelSelector:
               matchLabels:
                 node-role.kubernetes.io/control-plane: ""
             mode: Inform
             authorizedUsers:
             - openshift-kube-scheduler/openshift-kube-scheduler-sa
             - ...
`;

const GROUPS = `groups:
- name: ControlPlane
  labelSelector: { matchLabels: { node-role.kubernetes.io/control-plane: "" } }
  mode: Inform
  authorizedUsers: [openshift-kube-scheduler/openshift-kube-scheduler-sa]
`;
const BARE = (version: string) =>
  `apiVersion: scheduling.openshift.io/${version}\nkind: NodeSchedulingPolicyConfig\n${GROUPS}`;
const WRAPPED = `apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: scheduling.openshift.io/NodeSchedulingPolicy
  configuration:
    apiVersion: scheduling.openshift.io/alphav1
    kind: NodeSchedulingPolicyConfig
${GROUPS.replaceAll(/^/gm, "    ")}`;

async function groups(files: Record<string, string>, ...more: string[]) {
  const source = folder(files);
  const { out } = await usher(["node-guard", "list", "--source", source, "-o", "json", ...GATE, ...more]);
  return JSON.parse(out).groups;
}

test.each([
  ["the seed's KubeAPIServerConfig", SEED],
  ["bare, v1alpha1", BARE("v1alpha1")],
  ["bare, alphav1", BARE("alphav1")],
  ["an AdmissionConfiguration", WRAPPED],
])("reads %s", async (_case, text) => {
  expect(await groups({ "config.yaml": text })).toMatchObject([
    {
      name: "ControlPlane",
      mode: "Inform",
      effectiveMode: "Inform",
      entries: expect.arrayContaining([
        expect.objectContaining({
          entry: "openshift-kube-scheduler/openshift-kube-scheduler-sa",
          origin: "file",
        }),
      ]),
    },
  ]);
});

test("a file with a bad entry loses only that entry", async () => {
  const [group] = await groups({ "config.yaml": BARE("alphav1").replace("[openshift", "[a/b/c, openshift") });
  expect(group.mode).toBe("Inform");
  expect(group.entries).toHaveLength(1);
});

const ENABLED = `apiVersion: scheduling.openshift.io/v1alpha1
kind: NodeSchedulingPolicy
metadata: { name: cluster }
spec: { groups: [{ name: ControlPlane, mode: Enable }] }
`;

test("list warns for a group with rbac that nodes which join while usher is down are not guarded", async () => {
  const noted = async (policy: string) =>
    (await usher(["node-guard", "list", "--source", folder({ "policy.yaml": policy }), ...GATE])).err;
  const text =
    "ControlPlane: nodes that join the group while usher does not answer are not guarded: its rights";
  expect(await noted(ENABLED.replace("Enable }", "Enable, rbac: true }"))).toContain(text);
  expect(await noted(ENABLED)).not.toContain("nodes that join");
});

test("compile prints the fallback's policies", async () => {
  const source = folder({ "policy.yaml": ENABLED });
  const { out, code } = await usher(["node-guard", "compile", "--source", source, ...GATE]);
  expect(code).toBe(0);
  const { kind, items } = parse(out);
  expect(kind).toBe("List");
  expect(items.map((one: { metadata: { name: string } }) => one.metadata.name)).toEqual([
    "usher-node-guard-controlplane-assign",
    "usher-node-guard-controlplane-assign",
    "usher-node-guard-controlplane-bind",
    "usher-node-guard-controlplane-bind",
    "usher-node-guard-controlplane-labels",
    "usher-node-guard-controlplane-labels",
  ]);
});

test("override list shows active overrides, and when ended ones ended", async () => {
  const at = (hours: number) => new Date(Date.now() + hours * 3_600_000).toISOString();
  const object = (name: string, from: number, until: number) => `apiVersion: usher.dev/v1alpha1
kind: NodeGuardOverride
metadata: { name: ${name}, annotations: { usher.dev/granted-by: sre } }
spec: { group: ControlPlane, mode: Inform, from: "${at(from)}", until: "${at(until)}", reason: replace cp-0 }
`;
  const source = folder({
    "o.yaml": [object("now", -1, 1), object("past", -3, -2), object("soon", 1, 2)].join("---\n"),
  });
  const { out, code } = await usher([
    "node-guard",
    "override",
    "list",
    "--source",
    source,
    "-o",
    "json",
    ...GATE,
  ]);
  expect(code).toBe(1);
  const states = JSON.parse(out).overrides.map((one: Record<string, string>) => [
    one["name"],
    one["state"],
    one["grantedBy"],
  ]);
  expect(states).toEqual([
    ["soon", "pending", "sre"],
    ["now", "active", "sre"],
    ["past", "expired", "sre"],
  ]);
});

test.each([
  [["--mode", "Inform", "--for", "1h", "--reason", "x"], "--group is required"],
  [["--group", "ControlPlane", "--mode", "Inform", "--for", "1h"], "--reason is required"],
  [["--group", "ControlPlane", "--mode", "Inform", "--for", "25h", "--reason", "x"], "at most 24h"],
  [["--group", "ControlPlane", "--mode", "Inform", "--for", "soon", "--reason", "x"], "must be such as 30m"],
  [["--group", "ControlPlane", "--mode", "Enable", "--for", "1h", "--reason", "x"], "Inform"],
])("override grant %j is invalid", async (args, message) => {
  const { code, err } = await usher(["node-guard", "override", "grant", ...args]);
  expect(err).toContain(message);
  expect(code).toBe(2);
});
