import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { recordOf } from "./recorded.ts";
import { EXAMPLES, folder, reviewed, reviewedOne } from "./usher.ts";

const SOURCE = ["--source", EXAMPLES];

const POD = {
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "reports", namespace: "shop", labels: { kind: "batch" } },
  spec: { containers: [{ name: "main", image: "a:1" }] },
};

const record = (change: object): string => JSON.stringify(recordOf("pods", POD, change));

test("a recorded review has its own user, operation and namespace", async () => {
  const result = await reviewedOne(["-", ...SOURCE, "-n", "lab", "--operation", "UPDATE"], record({}));
  expect(result.object).toEqual({ apiVersion: "v1", kind: "Pod", namespace: "shop", name: "reports" });
  expect(result.changes.map(({ policy }) => policy)).toEqual(["batch-nights", "zone-a"]);
});

test("it is evaluated as recorded, without further defaults", async () => {
  const { patch } = await reviewedOne(["-", ...SOURCE], record({ object: { ...POD, spec: {} } }));
  expect(patch[0]).toEqual({
    op: "add",
    path: "/spec/nodeSelector",
    value: { pool: "batch", "topology.kubernetes.io/zone": "a" },
  });
});

test("evaluates updates and deletions, several in a file, beside manifests", async () => {
  const directory = folder({
    "recorded.json": [
      record({ operation: "UPDATE", oldObject: POD }),
      record({ operation: "DELETE", object: null, oldObject: POD }),
      record({ operation: "CONNECT", subResource: "exec", object: { kind: "PodExecOptions" } }),
      JSON.stringify(POD),
    ].join("\n"),
  });
  const { results, summary, code, err } = await reviewed([join(directory, "recorded.json"), ...SOURCE]);
  expect(err).toBe("");
  expect(code).toBe(0);
  expect(results.map(({ patch }) => patch.length > 0)).toEqual([false, false, false, true]);
  expect(summary).toEqual({ allowed: 4, unchanged: 3, patched: 1, denied: 0 });
});

describe("an invalid recorded review is reported with its position", () => {
  test.each([
    [
      "an old version",
      { apiVersion: "admission.k8s.io/v1beta1", request: { uid: "u" } },
      /v1beta1" is not supported/,
    ],
    ["no request", { apiVersion: "admission.k8s.io/v1" }, /has no request/],
    ["no uid", { apiVersion: "admission.k8s.io/v1", request: {} }, /request\.uid is missing/],
    [
      "no operation",
      { apiVersion: "admission.k8s.io/v1", request: { uid: "u" } },
      /request\.operation must be one of/,
    ],
  ])("%s", async (_, review, message) => {
    const stdin = `${JSON.stringify({ kind: "AdmissionReview", ...review })}\n${record({})}`;
    const { results, err, code } = await reviewed(["-", ...SOURCE], stdin);
    expect(err).toMatch(/^stdin:1:1: /);
    expect(err).toMatch(message);
    expect(results).toHaveLength(1);
    expect(code).toBe(2);
  });
});
