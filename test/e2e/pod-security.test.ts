// The API server and usher evaluate the same pods: Pod Security at every version, OS validation of pods and templates.
import { describe, expect, test } from "vitest";
import type { JsonObject } from "../../src/core/json.ts";
import { CHECKS, NEWEST_MINOR } from "../../src/modules/pod-os/security/checks.ts";
import { BREAKPOINTS } from "../builders/pod-security-fixtures.ts";
import type { ClusterAccess } from "../cluster/access/access.ts";
import type { ClusterOptions } from "../cluster/cluster.ts";
import { describeOwnCluster } from "../cluster/describe.ts";
import { type Comparison, compare, policyNamespace } from "./pod-security/differential.ts";
import { CLASSES, podFields } from "./pod-security/os-fields.ts";
import { describeOSValidation } from "./pod-security/os-validation.ts";
import { MIXED, podsAt } from "./pod-security/pods.ts";

const WITHOUT: ClusterOptions["without"] = ["kube-controller-manager", "kube-scheduler", "kwok"];
/** No controller creates service accounts here. */
const NO_ACCOUNTS = "--disable-admission-plugins=ServiceAccount";

const ONE_CONTAINER = { containers: [{ name: "c", image: "i" }] };

async function compareAt(
  cluster: ClusterAccess,
  versions: readonly (readonly [version: string, minor: number])[],
  newest: number,
): Promise<Comparison> {
  const jobs = await Promise.all(
    versions.map(async ([version, minor]) => {
      const names = { baseline: "", restricted: "" };
      for (const level of ["baseline", "restricted"] as const)
        names[level] = await policyNamespace(cluster, level, version);
      return [
        ...podsAt(minor),
        ...MIXED,
        ...MIXED.map((pod) => ({ ...pod, level: "restricted" as const })),
      ].map((pod) => ({ pod, namespace: names[pod.level], version }));
    }),
  );
  return compare(cluster, jobs.flat(), newest);
}

const AS_BUILT: ClusterOptions = {
  without: WITHOUT,
  flags: { "kube-apiserver": [NO_ACCOUNTS, "--feature-gates=ContainerStopSignals=true"] },
};

describeOwnCluster("an API server of the newest known version", AS_BUILT, (cluster) => {
  test("agrees in verdict and text at every version that changes a check, and at latest", async () => {
    const versions = BREAKPOINTS.map((minor) => [`v1.${minor}`, minor] as const);
    const result = await compareAt(cluster(), [...versions, ["latest", NEWEST_MINOR]], NEWEST_MINOR);
    expect(result.differences).toEqual([]);
    for (const { id } of CHECKS) {
      expect(result.compared.get(id), id).toBeGreaterThan(5);
      expect(result.denied.get(id), id).toBeGreaterThan(0);
    }
  });

  test("every field of a pod spec is classified by OS, and no other field", async () => {
    const fields = podFields((await cluster().call("GET", "/openapi/v3/api/v1")) as JsonObject);
    expect(fields.filter(({ fieldClass }) => fieldClass === undefined)).toEqual([]);
    expect(fields.map(({ path }) => path).toSorted()).toEqual([...CLASSES.keys()].toSorted());
  });

  describe("OS validation", () => {
    describeOSValidation(cluster);
  });
});

const EMULATING: ClusterOptions = {
  without: WITHOUT,
  flags: { "kube-apiserver": [NO_ACCOUNTS, "--emulated-version=1.36"] },
};

describeOwnCluster("an API server that emulates 1.36", EMULATING, (cluster) => {
  test("agrees that latest and newer versions are v1.36", async () => {
    const versions = [
      ["v1.36", 36],
      ["latest", 37],
    ] as const;
    const result = await compareAt(cluster(), versions, 36);
    expect(result.differences).toEqual([]);
    expect(result.denied.get("sysctls")).toBeGreaterThan(4);
    const beyond = { name: "p", check: "sysctls", level: "baseline" as const, metadata: { name: "p" } };
    const spec = {
      ...ONE_CONTAINER,
      securityContext: { sysctls: [{ name: "net.ipv4.tcp_notsent_lowat", value: "1" }] },
    };
    const namespace = await policyNamespace(cluster(), "baseline", "v1.37");
    const newer = await compare(
      cluster(),
      [{ pod: { ...beyond, spec, judged: spec }, namespace, version: "v1.37" }],
      36,
    );
    expect([newer.denied.get("sysctls"), newer.differences]).toEqual([1, []]);
  });
});
