import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { folder, usher } from "./usher.ts";

const NAMESPACE = `
apiVersion: v1
kind: Namespace
metadata: { name: shop, labels: { pod-security.kubernetes.io/enforce: baseline } }
---
apiVersion: usher.dev/v1alpha1
kind: PodSecurityException
metadata: { name: ports }
spec: { checks: [hostPorts], namespaces: [shop], expires: "2036-01-01T00:00:00Z" }
`;

const pod = (name: string, spec: string) => `
apiVersion: v1
kind: Pod
metadata: { name: ${name}, namespace: shop }
spec: { ${spec}, containers: [{ name: c, image: i }] }
---`;

const ROLLOUT = `
apiVersion: argoproj.io/v1alpha1
kind: Rollout
metadata: { name: r, namespace: shop }
spec: { template: { spec: { os: { name: windows }, hostPID: true, containers: [{ name: c, image: i }] } } }
`;

const config = (podOS: string) => `
apiVersion: usher.dev/v1alpha1
kind: UsherConfiguration
spec:
  workloads:
    - { group: argoproj.io, version: v1alpha1, kind: Rollout, resource: rollouts, template: spec.template }
  modules: { pod-os: ${podOS} }
`;

function review(objects: string, podOS = "{}", ...args: readonly string[]) {
  const files = folder({ "objects.yaml": objects, "usher.yaml": config(podOS) });
  const source = folder({ "cluster.yaml": NAMESPACE });
  const words = [
    "review",
    join(files, "objects.yaml"),
    "--source",
    source,
    "--config",
    join(files, "usher.yaml"),
  ];
  return usher([...words, ...args]);
}

describe("a review with pod-os", () => {
  it("changes and refuses nothing by default", async () => {
    const { code, out } = await review(pod("bad", "hostPID: true"));
    expect(out).toMatch(/Pod shop\/bad +allow/);
    expect(code).toBe(0);
  });

  it("refuses fields of another OS, also for configured kinds", async () => {
    const { code, out } = await review(pod("win", "os: { name: windows }, hostPID: true") + ROLLOUT);
    expect(code).toBe(1);
    expect(out).toMatch(
      /Pod shop\/win +deny +spec.hostPID: Forbidden: cannot be set for a windows pod +pod-os/,
    );
    expect(out).toMatch(/Rollout shop\/r +deny +spec.template.spec.hostPID: Forbidden/);
  });

  it("evaluates Pod Security in Replace mode", async () => {
    const { out } = await review(pod("bad", "hostPID: true"), "{ podSecurity: { mode: Replace } }", "-q");
    expect(out).toMatch(/Pod shop\/bad +deny +spec.hostPID: must be false or absent +pod-os/);
  });

  it("drops spec.os while the gate is off", async () => {
    const { out } = await review(
      pod("win", "os: { name: windows }, hostPID: true"),
      "{}",
      "--feature-gates",
      "IdentifyPodOS=false",
      "--emit",
    );
    expect(out).not.toContain("windows");
  });

  it.each([
    ["{ podSecurity: { ephemeralContainers: Added } }", "podSecurity.ephemeralContainers: has no effect"],
    ["{ podSecurity: { mode: Off } }", "spec.modules.pod-os.podSecurity.mode"],
    ["{ os: { nodeMismatch: Deny } }", "spec.modules.pod-os.os.nodeMismatch: Deny needs write: true"],
  ])("%s is an error at start", async (podOS, message) => {
    const { code, err } = await review(pod("a", "hostPID: false"), podOS);
    expect(err).toContain(message);
    expect(code).toBe(2);
  });
});
