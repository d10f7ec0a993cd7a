import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Json } from "../json.ts";
import {
  BUILT_IN_WORKLOADS,
  isBuiltIn,
  POD,
  podTemplateOf,
  specPath,
  type WorkloadKind,
  workloadTable,
} from "./workloads.ts";

const table = workloadTable([]);

test.each<[string, string, string, string]>([
  ["", "pods", "Pod", "spec"],
  ["", "replicationcontrollers", "ReplicationController", "spec.template.spec"],
  ["", "podtemplates", "PodTemplate", "template.spec"],
  ["apps", "replicasets", "ReplicaSet", "spec.template.spec"],
  ["apps", "deployments", "Deployment", "spec.template.spec"],
  ["apps", "statefulsets", "StatefulSet", "spec.template.spec"],
  ["apps", "daemonsets", "DaemonSet", "spec.template.spec"],
  ["batch", "jobs", "Job", "spec.template.spec"],
  ["batch", "cronjobs", "CronJob", "spec.jobTemplate.spec.template.spec"],
])("%s/%s is %s with its pod spec at %s", (group, resource, kind, path) => {
  const workload = table.byResource(group, resource);
  expect(workload).toBeDefined();
  expect(table.byKind(group, kind)).toBe(workload);
  expect(workload === undefined ? [] : specPath(workload).join(".")).toBe(path);
  expect(workload?.version).toBe("v1");
});

test("no other kind is a workload", () => {
  expect(table.all).toEqual(BUILT_IN_WORKLOADS);
  expect(table.all).toHaveLength(9);
  expect(table.byResource("", "deployments")).toBeUndefined();
  expect(table.byResource("apps", "Deployment")).toBeUndefined();
  expect(table.byKind("apps", "deployments")).toBeUndefined();
  expect(table.byKind("", "constructor")).toBeUndefined();
  expect(table.byResource("", "__proto__")).toBeUndefined();
});

describe("kinds of a configuration", () => {
  const rollout: WorkloadKind = {
    group: "argoproj.io",
    version: "v1alpha1",
    kind: "Rollout",
    resource: "rollouts",
    template: ["spec", "template"],
  };

  test("are found like the others", () => {
    const more = workloadTable([rollout]);
    expect(more.byResource("argoproj.io", "rollouts")).toBe(rollout);
    expect(more.byKind("argoproj.io", "Rollout")).toBe(rollout);
    expect(more.byKind("apps", "Deployment")).toBeDefined();
    expect(isBuiltIn(rollout)).toBe(false);
    expect(BUILT_IN_WORKLOADS.every(isBuiltIn)).toBe(true);
  });

  test("do not replace existing kinds", () => {
    const moved = {
      group: "apps",
      version: "v1",
      kind: "Deployment",
      resource: "other",
      template: ["elsewhere"],
    };
    const twice = { ...rollout, template: ["elsewhere"] };
    const more = workloadTable([moved, rollout, twice]);
    expect(more.byKind("apps", "Deployment")?.template).toEqual(["spec", "template"]);
    expect(more.byResource("apps", "other")).toBeUndefined();
    expect(more.byKind("argoproj.io", "Rollout")).toBe(rollout);
    expect(more.all).toHaveLength(10);
  });
});

describe("podTemplateOf", () => {
  const metadata = { labels: { app: "web" } };
  const spec = { containers: [] };

  test.each(BUILT_IN_WORKLOADS.map((workload) => [workload.kind, workload] as const))(
    "%s",
    (_kind, workload) => {
      let object: Json = { metadata, spec };
      for (const step of workload.template.toReversed()) object = { [step]: object };
      expect(podTemplateOf(object, workload)).toEqual({ path: workload.template, metadata, spec });
    },
  );

  test("a controller may have no template", () => {
    const controller = table.byKind("", "ReplicationController") ?? POD;
    for (const object of [
      {},
      { spec: {} },
      { spec: { template: null } },
      { spec: { template: [] } },
      null,
      [],
      "x",
    ]) {
      expect(podTemplateOf(object, controller)).toBeUndefined();
    }
    expect(podTemplateOf(undefined, POD)).toBeUndefined();
  });

  test("parts that are not there", () => {
    expect(podTemplateOf({}, POD)).toEqual({ path: [], metadata: undefined, spec: undefined });
    expect(podTemplateOf({ metadata: null, spec: [] }, POD)).toEqual({
      path: [],
      metadata: undefined,
      spec: undefined,
    });
  });

  test("never throws for any JSON", () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.constantFrom(...BUILT_IN_WORKLOADS), (value, workload) => {
        const template = podTemplateOf(value as Json, workload);
        expect(template === undefined || template.path === workload.template).toBe(true);
      }),
    );
  });
});
