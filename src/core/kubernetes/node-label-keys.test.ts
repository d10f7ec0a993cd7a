import { describe, expect, it } from "vitest";
import { admittedAtRegistration, isKubeletLabel } from "./node-label-keys.ts";

describe("labels that NodeRestriction accepts from a node that registers itself", () => {
  it.each([
    ["test.openshift.io/foo", true],
    ["plain", true],
    ["node.kubernetes.io/pool", true],
    ["sub.node.kubernetes.io/pool", true],
    ["kubelet.kubernetes.io/x", true],
    ["topology.kubernetes.io/zone", true],
    ["failure-domain.beta.kubernetes.io/region", true],
    ["kubernetes.io/os", true],
    ["kubernetes.io/other", false],
    ["topology.kubernetes.io/rack", false],
    ["node-role.kubernetes.io/edge", false],
    ["node-role.kubernetes.io/worker", false],
    ["foo.k8s.io/x", false],
    ["k8s.io/x", false],
    ["notk8s.io/x", true],
    ["notkubernetes.io/x", true],
    ["node-restriction.kubernetes.io/x", false],
    ["a.node-restriction.kubernetes.io/x", false],
  ])("%s: %s", (key, admitted) => {
    expect(admittedAtRegistration(key, false)).toBe(admitted);
  });

  it.each([
    ["node-role.kubernetes.io/worker", true],
    ["node-role.kubernetes.io/control-plane", true],
    ["node-role.kubernetes.io/master", true],
    ["node-role.kubernetes.io/etcd", true],
    ["node-role.kubernetes.io/edge", false],
    ["node-restriction.kubernetes.io/worker", false],
  ])("in OpenShift %s: %s", (key, admitted) => {
    expect(admittedAtRegistration(key, true)).toBe(admitted);
  });
});

it("protects labels that the kubelet manages, stable and beta", () => {
  for (const key of [
    "kubernetes.io/hostname",
    "beta.kubernetes.io/arch",
    "failure-domain.beta.kubernetes.io/zone",
  ])
    expect(isKubeletLabel(key)).toBe(true);
  expect(isKubeletLabel("node-role.kubernetes.io/worker")).toBe(false);
});
