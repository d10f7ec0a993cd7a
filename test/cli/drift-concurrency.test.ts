import { expect, test } from "vitest";
import { chosenFrom } from "../../src/cli/drift/choose.ts";
import { inTurns } from "../../src/cli/drift/concurrency.ts";
import { workloadTable } from "../../src/core/kubernetes/workloads.ts";

test.each([1, 2, 5, 99])("%i at a time, never more, results in the order of the items", async (parallel) => {
  const items = Array.from({ length: 12 }, (_, i) => i);
  let under = 0;
  let most = 0;
  const seen: number[] = [];
  const results = await inTurns(
    items,
    async (item) => {
      most = Math.max(most, ++under);
      // Later ones are done sooner.
      for (let i = item; i < 12; i++) await Promise.resolve();
      under--;
      return item * 2;
    },
    { parallel, pauseMs: 0, progress: (done) => seen.push(done) },
  );
  expect(results).toEqual(items.map((item) => item * 2));
  expect(most).toBe(Math.min(parallel, 12));
  expect(seen).toEqual(items.map((item) => item + 1));
});

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
  expect(chosenFrom(text, "shop", TABLE)).toMatchObject({
    workload: { kind },
    namespace: "shop",
    name: "web",
  });
});

test.each([
  ["web", "write it as KIND/NAME"],
  ["deployment/", "write it as KIND/NAME"],
  ["a/b/c", "write it as KIND/NAME"],
  ["deploymnet/web", 'did you mean "deployment"?'],
  ["service/web", "there are: pod, "],
])("%s is a slip, and the answer says how to write it", (text, hint) => {
  expect(() => chosenFrom(text, "shop", TABLE)).toThrow(hint);
});
