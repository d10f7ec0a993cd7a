import { expect, test } from "vitest";
import { assemblyOf } from "../../../../test/builders/evaluation.ts";
import { moduleThat } from "../../../../test/builders/module.ts";
import { deployment } from "../../../../test/builders/pod.ts";
import type { JsonObject } from "../../json.ts";
import type { CommandResult, PlannedChange } from "../../module/command.ts";
import { reapplyCode } from "./reapply.ts";

const ANNOTATION = "usher.dev/reapply";
const MODULE = {
  ...moduleThat("seating", {}),
  driftScan: { annotation: ANNOTATION, leftAlone: () => undefined },
};

const STORED = deployment({ metadata: { resourceVersion: "7" }, spec: { nodeSelector: { pool: "etcd" } } });
const OF = { resource: "deployments.apps", namespace: "shop", name: "web" };

function planned(...workload: string[]): CommandResult {
  const run = reapplyCode.run({
    args: { workload },
    flags: { parallel: 3, pause: 4 },
    namespace: "shop",
    module: MODULE,
    assembly: assemblyOf([MODULE]),
    live: true,
    changedOnly: false,
    parse: () => undefined,
    now: 0,
    calledAs: "usher seating",
  });
  if (!("next" in run)) return run;
  const step = run.next([]);
  if (step.done !== true) throw new Error("named workloads need nothing");
  return step.value;
}

function change(): PlannedChange {
  const result = planned("deployment/web");
  if (!("changes" in result) || result.changes[0] === undefined) throw new Error("nothing is planned");
  return result.changes[0];
}

test("named workloads are planned without reading anything", () => {
  expect(planned("deploy/web", "sts/etcd")).toMatchObject({
    changes: [
      { kind: "Deployment", of: OF },
      { kind: "StatefulSet", of: { ...OF, resource: "statefulsets.apps", name: "etcd" } },
    ],
    parallel: 3,
    pauseSeconds: 4,
  });
});

test("the write requests reapplying, guarded by the version that was read", () => {
  expect(change().plan(STORED)).toEqual({
    patch: [{ op: "add", path: "/metadata/annotations", value: { [ANNOTATION]: "cli" } }],
    of: OF,
    resourceVersion: "7",
  });
  expect(change().plan(undefined)).toEqual({ failed: "not found" });
});

test.each<[string, JsonObject, string[]]>([
  ["a changed template", { nodeSelector: { pool: "nvme" } }, ["~ nodeSelector.pool etcd -> nvme"]],
  ["no change", { nodeSelector: { pool: "etcd" } }, []],
])("the outcome is the difference of the pod template: %s", (_, spec, changes) => {
  expect(change().outcome?.(STORED, deployment({ spec }))).toEqual({ changes });
});

test("a request that usher did not consume fails, and is withdrawn", () => {
  const written = deployment({ metadata: { resourceVersion: "8" }, annotations: { [ANNOTATION]: "cli" } });
  expect(change().outcome?.(STORED, written)).toEqual({
    failed: expect.stringContaining("usher's webhook did not respond"),
    undo: {
      patch: [{ op: "remove", path: "/metadata/annotations/usher.dev~1reapply" }],
      of: OF,
      resourceVersion: "8",
    },
  });
});
