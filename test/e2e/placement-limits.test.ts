// The module's assumptions about fields that the API server lets change, verified on a real one: every field, in every
// state of a pod and a Job.
import { expect, test } from "vitest";
import { type Json, type JsonObject, listAt } from "../../src/core/json.ts";
import { BUILT_IN_WORKLOADS } from "../../src/core/kubernetes/workloads.ts";
import type { Path } from "../../src/core/path.ts";
import { CRITERIA } from "../../src/modules/placement/criteria/criteria.ts";
import { mutabilityOf } from "../../src/modules/placement/place/mutability.ts";
import { eventually } from "../cluster/access/wait.ts";
import { describeCluster, testNamespace } from "../cluster/describe.ts";

const REQUIREMENT = { key: "zone", operator: "In", values: ["a"] };
const POD_TERM = { topologyKey: "kubernetes.io/hostname", labelSelector: { matchLabels: { app: "x" } } };
const REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution";

/** A policy's change, as a merge patch of the pod's spec. */
const WRITES: Readonly<Record<string, (spec: Json | undefined) => JsonObject>> = {
  nodeSelector: () => ({ nodeSelector: { added: "yes" } }),
  nodeName: () => ({ nodeName: "some-node" }),
  schedulerName: () => ({ schedulerName: "other" }),
  tolerations: (spec) => ({
    tolerations: [...listAt(spec, "tolerations"), { key: "x", operator: "Exists" }],
  }),
  requiredNodeAffinity: () => ({
    affinity: {
      nodeAffinity: { [REQUIRED]: { nodeSelectorTerms: [{ matchExpressions: [REQUIREMENT] }] } },
    },
  }),
  preferredNodeAffinity: () => ({
    affinity: {
      nodeAffinity: { [PREFERRED]: [{ weight: 1, preference: { matchExpressions: [REQUIREMENT] } }] },
    },
  }),
  requiredPodAffinity: () => ({ affinity: { podAffinity: { [REQUIRED]: [POD_TERM] } } }),
  preferredPodAffinity: () => ({
    affinity: { podAffinity: { [PREFERRED]: [{ weight: 1, podAffinityTerm: POD_TERM }] } },
  }),
  requiredPodAntiAffinity: () => ({ affinity: { podAntiAffinity: { [REQUIRED]: [POD_TERM] } } }),
  preferredPodAntiAffinity: () => ({
    affinity: { podAntiAffinity: { [PREFERRED]: [{ weight: 1, podAffinityTerm: POD_TERM }] } },
  }),
  topologySpreadConstraints: () => ({
    topologySpreadConstraints: [{ ...POD_TERM, maxSkew: 1, whenUnsatisfiable: "DoNotSchedule" }],
  }),
  // With the derived numbers; otherwise any pod would refuse it.
  priorityClassName: () => ({
    priorityClassName: "system-node-critical",
    priority: null,
    preemptionPolicy: null,
  }),
  runtimeClassName: () => ({ runtimeClassName: "some-class" }),
  schedulingGates: (spec) => ({
    schedulingGates: [...listAt(spec, "schedulingGates"), { name: "example.com/added" }],
  }),
};
const FIELDS = Object.keys(WRITES);

test("every criterion is tried", () => {
  expect(FIELDS.toSorted()).toEqual(CRITERIA.map(({ name }) => name).toSorted());
});

describeCluster("fields that can change on an existing object", (cluster) => {
  const namespace = testNamespace(cluster);
  const pods = () => `/api/v1/namespaces/${namespace()}/pods`;
  const jobs = () => `/apis/batch/v1/namespaces/${namespace()}/jobs`;
  const CONTAINERS = [{ name: "c", image: "any" }];
  // No node has this label, so that nothing ever runs.
  const NOWHERE = { nodeSelector: { "example.com/nowhere": "yes" } };

  /** The fields that the API server lets change now. */
  const accepted = async (path: string, at: Path): Promise<string[]> => {
    const stored = (await cluster().call("GET", path)) as JsonObject;
    const accepted: string[] = [];
    for (const field of FIELDS) {
      const spec = at.reduce<Json | undefined>((here, key) => (here as JsonObject)[String(key)], stored);
      const patch = at.reduceRight<JsonObject>(
        (inner, key) => ({ [key]: inner }),
        WRITES[field]?.(spec) ?? {},
      );
      const { status } = await cluster().request("PATCH", `${path}?dryRun=All`, patch);
      expect([200, 403, 422]).toContain(status);
      if (status === 200) accepted.push(field);
    }
    return accepted;
  };

  const believed = async (path: string, kind: string): Promise<string[] | "none"> => {
    const stored = (await cluster().call("GET", path)) as JsonObject;
    const workload = BUILT_IN_WORKLOADS.find((one) => one.kind === kind);
    if (workload === undefined) throw new Error(`no workload ${kind}`);
    const mutability = mutabilityOf(workload, stored);
    if ("immutable" in mutability) return "none";
    return FIELDS.filter((field) => mutability.limits.immutable[field] === undefined);
  };

  const pod = async (name: string, spec: JsonObject): Promise<string> => {
    await cluster().call("POST", pods(), {
      metadata: { name },
      spec: { containers: CONTAINERS, ...NOWHERE, ...spec },
    });
    return `${pods()}/${name}`;
  };

  const job = async (name: string, suspend: boolean): Promise<string> => {
    const template = { spec: { containers: CONTAINERS, restartPolicy: "Never", ...NOWHERE } };
    await cluster().call("POST", jobs(), { metadata: { name }, spec: { suspend, template } });
    return `${jobs()}/${name}`;
  };

  const AT_JOB: Path = ["spec", "template", "spec"];

  test("on a gated pod", async () => {
    const path = await pod("gated", { schedulingGates: [{ name: "example.com/wait" }] });
    expect(await accepted(path, ["spec"])).toEqual(await believed(path, "Pod"));
  });

  test("on a pod whose gate is removed: longer terms in the same update, and neither more terms nor fewer", async () => {
    const affinity = (...nodeSelectorTerms: readonly JsonObject[]): JsonObject => ({
      nodeAffinity: { [REQUIRED]: { nodeSelectorTerms } },
    });
    const term = { matchExpressions: [REQUIREMENT] };
    const path = await pod("steered", {
      schedulingGates: [{ name: "example.com/wait" }],
      affinity: affinity(term, term),
    });
    const away = { key: "metadata.name", operator: "NotIn", values: ["cp-0"] };
    const longer = { ...term, matchFields: [away, { ...away, values: ["cp-1"] }] };
    const statuses: number[] = [];
    for (const terms of [[longer, longer], [longer], [longer, longer, longer]]) {
      const spec = { schedulingGates: null, affinity: affinity(...terms) };
      statuses.push((await cluster().request("PATCH", `${path}?dryRun=All`, { spec })).status);
    }
    expect(statuses).toEqual([200, 422, 422]);
  });

  test("on a pod without a gate: only tolerations, which usher does not use", async () => {
    const path = await pod("plain", {});
    expect(await believed(path, "Pod")).toBe("none");
    expect(await accepted(path, ["spec"])).toEqual(["tolerations"]);
  });

  test("on a Job, suspended, running, and suspended again", async () => {
    const path = await job("work", true);
    const before = await believed(path, "Job");
    expect(before).not.toBe("none");
    expect(await accepted(path, AT_JOB)).toEqual(before);

    await cluster().call("PATCH", path, { spec: { suspend: false } });
    await eventually("the Job to start", async () => {
      const { body } = await cluster().request("GET", path);
      return (body as { status?: { startTime?: string } }).status?.startTime !== undefined;
    });
    expect(await believed(path, "Job")).toBe("none");
    expect(await accepted(path, AT_JOB)).toEqual([]);

    await cluster().call("PATCH", path, { spec: { suspend: true } });
    const again = await eventually("the Job to stop", async () => {
      const now = await believed(path, "Job");
      return now === "none" ? undefined : now;
    });
    expect(await accepted(path, AT_JOB)).toEqual(again);
  });
});
