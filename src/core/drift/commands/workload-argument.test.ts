import { expect, test } from "vitest";
import { workloadTable } from "../../kubernetes/workloads.ts";
import { parseWorkload } from "./workload-argument.ts";

const TABLE = workloadTable([
  {
    group: "argoproj.io",
    version: "v1alpha1",
    kind: "Rollout",
    resource: "rollouts",
    template: ["spec", "template"],
  },
]);

test.each([
  ["deployment/web", "Deployment"],
  ["Deployment/web", "Deployment"],
  ["deploy/web", "Deployment"],
  ["deployments.apps/web", "Deployment"],
  ["deployment.apps/web", "Deployment"],
  ["sts/web", "StatefulSet"],
  ["cj/web", "CronJob"],
  ["pod/web", "Pod"],
  ["rollout/web", "Rollout"],
])("%s is a %s", (text, kind) => {
  expect(parseWorkload(text, TABLE)).toMatchObject({ workload: { kind }, name: "web" });
});

test.each([
  ["web", "must be KIND/NAME"],
  ["deployment/", "must be KIND/NAME"],
  ["a/b/c", "must be KIND/NAME"],
  ["deploymnet/web", 'did you mean "deployment"?'],
  ["service/web", "known kinds: pod, "],
])("%s is an error with a hint", (text, hint) => {
  expect(parseWorkload(text, TABLE)).toEqual({ wrong: expect.stringContaining(hint) });
});
