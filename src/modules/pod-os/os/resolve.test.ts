import { describe, expect, test } from "vitest";
import type { Json, JsonObject } from "../../../core/json.ts";
import { resolvePodOS } from "./resolve.ts";

const KEY = "kubernetes.io/os";
const affinity = (...terms: JsonObject[][]): JsonObject => ({
  affinity: {
    nodeAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: {
        nodeSelectorTerms: terms.map((matchExpressions) => ({ matchExpressions })),
      },
    },
  },
});
const isIn = (...values: string[]): JsonObject => ({ key: KEY, operator: "In", values });
const notIn = (...values: string[]): JsonObject => ({ key: KEY, operator: "NotIn", values });
const zone: JsonObject = { key: "zone", operator: "In", values: ["a"] };
const runtimeClass: JsonObject = { scheduling: { nodeSelector: { [KEY]: "windows" } } };

describe("source", () => {
  test.each<[string, JsonObject, JsonObject | undefined, JsonObject]>([
    ["nothing", {}, undefined, { source: "none", confidence: "none" }],
    [
      "spec.os",
      { spec: { os: { name: "windows" } } },
      undefined,
      { os: "windows", source: "explicit", confidence: "certain" },
    ],
    [
      "nodeSelector",
      { spec: { nodeSelector: { [KEY]: "linux" } } },
      undefined,
      { os: "linux", source: "nodeSelector", confidence: "high" },
    ],
    [
      "the old label",
      { spec: { nodeSelector: { "beta.kubernetes.io/os": "linux" } } },
      undefined,
      { os: "linux", source: "nodeSelector", confidence: "high" },
    ],
    [
      "affinity",
      { spec: affinity([isIn("windows")]) },
      undefined,
      { os: "windows", source: "nodeAffinity", confidence: "high" },
    ],
    [
      "affinity, two terms",
      { spec: affinity([isIn("linux"), zone], [isIn("linux")]) },
      undefined,
      { os: "linux", source: "nodeAffinity", confidence: "high" },
    ],
    [
      "affinity, narrowed",
      { spec: affinity([isIn("linux", "windows"), notIn("linux")]) },
      undefined,
      { os: "windows", source: "nodeAffinity", confidence: "high" },
    ],
    [
      "one term leaves it open",
      { spec: affinity([isIn("linux")], [zone]) },
      undefined,
      { source: "none", confidence: "none" },
    ],
    [
      "two possible",
      { spec: affinity([isIn("linux")], [isIn("windows")]) },
      undefined,
      { source: "none", confidence: "none" },
    ],
    [
      "excluding one names none",
      { spec: affinity([notIn("windows")]) },
      undefined,
      { source: "none", confidence: "none" },
    ],
    [
      "RuntimeClass",
      { spec: { runtimeClassName: "w" } },
      runtimeClass,
      { os: "windows", source: "runtimeClass", confidence: "high" },
    ],
    [
      "pod label",
      { metadata: { labels: { [KEY]: "linux" } } },
      undefined,
      { os: "linux", source: "podLabel", confidence: "low" },
    ],
    ["another OS", { spec: { os: { name: "plan9" } } }, undefined, { source: "none", confidence: "none" }],
    [
      "the strongest",
      { metadata: { labels: { [KEY]: "linux" } }, spec: { nodeSelector: { [KEY]: "linux" } } },
      undefined,
      { os: "linux", source: "nodeSelector", confidence: "high" },
    ],
  ])("%s", (_name, pod, given, expected) => {
    expect(resolvePodOS(pod, given)).toEqual({ ...expected, contradictions: [] });
  });
});

describe("contradictions", () => {
  const windows = { os: { name: "windows" } };
  test.each<[string, JsonObject, JsonObject | undefined, string[]]>([
    ["nodeSelector", { spec: { ...windows, nodeSelector: { [KEY]: "linux" } } }, undefined, ["nodeSelector"]],
    [
      "an unknown OS",
      { spec: { ...windows, nodeSelector: { [KEY]: "plan9" } } },
      undefined,
      ["nodeSelector"],
    ],
    ["affinity", { spec: { ...windows, ...affinity([isIn("linux")]) } }, undefined, ["nodeAffinity"]],
    [
      "affinity to nodes without an OS",
      { spec: { ...windows, ...affinity([{ key: KEY, operator: "DoesNotExist" }]) } },
      undefined,
      ["nodeAffinity"],
    ],
    [
      "excluding affinity",
      { spec: { ...windows, ...affinity([notIn("windows")]) } },
      undefined,
      ["nodeAffinity"],
    ],
    ["one term allows it", { spec: { ...windows, ...affinity([isIn("linux")], [zone]) } }, undefined, []],
    ["RuntimeClass", { spec: { os: { name: "linux" } } }, runtimeClass, ["runtimeClass"]],
    ["pod label", { metadata: { labels: { [KEY]: "linux" } }, spec: windows }, undefined, ["podLabel"]],
    [
      "among what is inferred",
      { metadata: { labels: { [KEY]: "windows" } }, spec: { nodeSelector: { [KEY]: "linux" } } },
      undefined,
      ["podLabel"],
    ],
  ])("%s", (_name, pod, given, sources) => {
    expect(resolvePodOS(pod, given).contradictions.map(({ source }) => source)).toEqual(sources);
  });

  test("name the field and both values", () => {
    const { contradictions } = resolvePodOS({ spec: { ...windows, nodeSelector: { [KEY]: "linux" } } });
    expect(contradictions).toEqual([
      {
        source: "nodeSelector",
        field: "spec.nodeSelector[kubernetes.io/os]",
        message: "linux contradicts spec.os.name: windows",
      },
    ]);
  });
});

test("resolves the OS of a pod of any shape without an error", () => {
  const values: Json[] = [null, "x", 5, [], [null], {}, JSON.parse('{"__proto__":{"name":"linux"}}')];
  const resolveAll = () => {
    for (const value of values) {
      resolvePodOS({ metadata: value as JsonObject, spec: value as JsonObject }, value as JsonObject);
      resolvePodOS({ spec: { os: value, nodeSelector: value, affinity: value } });
      resolvePodOS({ spec: affinity([value as JsonObject]) });
    }
  };
  expect(resolveAll).not.toThrow();
});
