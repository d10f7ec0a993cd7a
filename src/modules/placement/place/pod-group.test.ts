import { expect, test } from "vitest";
import { placed, SHOP } from "../../../../test/builders/placed.ts";
import { pod, workload } from "../../../../test/builders/pod.ts";
import { clusterPolicy } from "../../../../test/builders/policy.ts";
import type { JsonObject } from "../../../core/json.ts";

const ZONE = { nodeSelector: { zone: "a" } };
const BY_LABEL = clusterPolicy("by-label", {
  namespaceSelector: {},
  podSelector: { matchLabels: { role: "worker" } },
  ...ZONE,
});
const BY_NAMESPACE = clusterPolicy("by-namespace", { namespaceSelector: {}, podSelector: {}, ...ZONE });
const member = (more: JsonObject = {}): JsonObject =>
  pod({
    labels: { role: "worker" },
    spec: { containers: [], schedulingGroup: { podGroupName: "train" }, ...more },
  });

test("a pod of a PodGroup that a policy places by its labels is placed with a warning that names group and policy", () => {
  const { answer, nodeSelector } = placed([SHOP, BY_LABEL], member());
  expect(nodeSelector).toEqual({ zone: "a" });
  expect(answer.warnings).toEqual([
    expect.stringMatching(/policy by-label selects pods by labels: pods of PodGroup train .*\(USHER-P25\)$/),
  ]);
});

test.for([
  ["the policy selects the whole namespace", BY_NAMESPACE, member()],
  ["the pod has what the policy asks for", BY_LABEL, member({ nodeSelector: { zone: "a" } })],
  ["the pod has no group", BY_LABEL, pod({ labels: { role: "worker" } })],
] as const)("no warning where %s", ([, policy, object]) => {
  const { answer, nodeSelector } = placed([SHOP, policy], object);
  expect(nodeSelector).toEqual({ zone: "a" });
  expect(answer.warnings).toEqual([]);
});

test("a template whose pods join a PodGroup gets the same warning", () => {
  const job = workload("batch/v1", "Job", {
    labels: { role: "worker" },
    spec: { containers: [], schedulingGroup: { podGroupName: "train" } },
  });
  expect(placed([SHOP, BY_LABEL], job).answer.warnings).toEqual([
    expect.stringMatching(/PodGroup train .*\(USHER-P25\)$/),
  ]);
});
