import { join } from "node:path";
import { expect, test } from "vitest";
import { EXAMPLES, folder, ROOT, reviewed, usher } from "./usher.ts";

const policy = (name: string, spec: string, namespace?: string) => `
apiVersion: kupid.gardener.cloud/v1alpha1
kind: ${namespace === undefined ? "ClusterPodSchedulingPolicy" : "PodSchedulingPolicy"}
metadata: {name: ${name}${namespace === undefined ? "" : `, namespace: ${namespace}`}}
spec: {${namespace === undefined ? "namespaceSelector: {}, " : ""}podSelector: {}, ${spec}}
---`;

const POD = (spec = "") => `
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop}
spec: {${spec}containers: [{name: main, image: "a:1"}]}
`;

const linesOf = async (policies: readonly string[], pod: string) => {
  const source = folder({ "policies.yaml": policies.join("") });
  const { out } = await usher(["review", "-", "--source", source, "--trace", "-q"], { stdin: pod });
  return out.split("\n").slice(1);
};

test("lists policies in the order in which they apply, independent of file order", async () => {
  const policies = [
    policy("own", "priority: 5, nodeSelector: {d: '1'}", "shop"),
    policy("b", "nodeSelector: {b: '1'}"),
    policy("late", "priority: -1, nodeSelector: {c: '1'}"),
    policy("a", "nodeSelector: {a: '1'}"),
  ];
  for (const order of [policies, policies.toReversed()]) {
    const lines = await linesOf(order, POD());
    expect(lines.filter((line) => line.includes("+ "))).toEqual(
      ["d", "a", "b", "c"].map((key) => `    + nodeSelector ${key}=1`),
    );
  }
});

test("does not mention a namespaceSelector for a namespaced policy of another namespace", async () => {
  const lines = await linesOf([policy("own", "nodeSelector: {d: '1'}", "lab")], POD());
  expect(lines[0]).toMatch(/^ {2}lab\/own +no effect {2}the policy is in namespace lab$/);
});

test("shows that a policy refuses, in the table and in JSON", async () => {
  const policies = [
    policy("hard", "onConflict: Refuse, nodeSelector: {pool: web}"),
    policy("soft", "nodeSelector: {pool: web}"),
  ];
  const pod = POD("nodeSelector: {pool: b}, ");
  const [first = ""] = await linesOf(policies, pod);
  expect(first).toMatch(/^ {2}hard +refuses +namespace shop, every pod$/);
  const source = folder({ "policies.yaml": policies.join("") });
  const { results } = await reviewed(["-", "--source", source, "--trace"], pod);
  expect(results[0]?.trace?.[0]).toMatchObject({ policy: "hard", applies: "refuses" });
});

test("an invalid policy with failurePolicy Fail refuses, as the webhook would, and one with Ignore is skipped", async () => {
  const invalid = "tolerations: [{key: a, operator: Exist}]";
  const closed = folder({ "policies.yaml": policy("closed", `failurePolicy: Fail, ${invalid}`) });
  const denied = await usher(["review", "-", "--source", closed, "--trace"], { stdin: POD() });
  expect(denied.out).toMatch(
    /^Pod shop\/web {2}deny\n {2}closed +refuses +the policy is not valid: .*unsupported operator "Exist"/,
  );
  expect(denied.code).toBe(2);
  const open = folder({ "policies.yaml": policy("open", invalid) });
  const allowed = await usher(["review", "-", "--source", open, "--trace"], { stdin: POD() });
  expect(allowed.out).toMatch(/^Pod shop\/web {2}allow\n {2}open +failed/);
  expect(allowed.err).toContain("Warning: Pod shop/web: policy open skipped: the policy is not valid");
});

const NODE = `
apiVersion: v1
kind: Node
metadata: {name: cp-0, labels: {node-role.kubernetes.io/control-plane: ""}}
spec: {taints: [{key: node-role.kubernetes.io/control-plane, effect: NoSchedule}]}
---
`;

const GUARD = `
apiVersion: scheduling.openshift.io/v1alpha1
kind: NodeSchedulingPolicyConfig
groups:
- name: ControlPlane
  labelSelector: {matchLabels: {node-role.kubernetes.io/control-plane: ""}}
  mode: Enable
  authorizedUsers: [kube-system/scheduler]
- name: edge
  labelSelector: {matchLabels: {edge: ""}}
  mode: Disable
  authorizedUsers: []
`;

test("explains for every group of node-guard why it refuses or does not", async () => {
  const source = folder({ "nodes.yaml": NODE, "guard.yaml": GUARD });
  const { out } = await usher(
    [
      ...["review", "-", "--source", source, "--trace"],
      ...["--feature-gates", "OpenShiftNodeSchedulingPolicy=true"],
    ],
    { stdin: POD("nodeName: cp-0, ") },
  );
  expect(out).toMatch(/^ {2}ControlPlane +refuses +Enable, /m);
  expect(out).toMatch(/^ {4}! pod shop\/web may not be assigned to node cp-0/m);
  expect(out).toMatch(/^ {2}edge +no effect +mode Disable, /m);
  expect(out).not.toContain("no policy was evaluated");
});

test.each([60, 80, 160])("breaks lines between words on a terminal of %d columns", async (columns) => {
  const args = ["review", join(ROOT, "examples/pods/etcd.yaml"), "--source", EXAMPLES, "--trace", "-q"];
  const { out } = await usher(args, { tty: true, columns, env: { NO_COLOR: "1" } });
  const lines = out.trimEnd().split("\n");
  expect(lines.filter((line) => line.length > columns)).toEqual([]);
  // Without spaces it is the same text: no word is cut, and none is lost.
  const whole = await usher(args);
  expect(out.split(/\s+/)).toEqual(whole.out.split(/\s+/));
  expect(lines.filter((line) => /^ {2}zone-a +partly {5}namespace/.test(line))).toHaveLength(1);
});
