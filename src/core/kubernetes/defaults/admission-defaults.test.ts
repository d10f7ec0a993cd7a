import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Json, JsonObject } from "../../json.ts";
import { tolerates } from "../tolerations.ts";
import { admissionDefaults } from "./admission-defaults.ts";

const specOf = (pod: JsonObject) => pod["spec"] as JsonObject;
const admitted = (spec: JsonObject, priorityClasses: JsonObject[] = []) =>
  specOf(admissionDefaults({ spec }, { priorityClasses }));

const trouble = (name: string) => ({
  key: `node.kubernetes.io/${name}`,
  operator: "Exists",
  effect: "NoExecute",
  tolerationSeconds: 300,
});

test("a bare pod gets all defaults", () => {
  const pod = Object.freeze({ spec: Object.freeze({ containers: [] }) });
  expect(admissionDefaults(pod)).toEqual({
    spec: {
      containers: [],
      serviceAccountName: "default",
      serviceAccount: "default",
      priority: 0,
      preemptionPolicy: "PreemptLowerPriority",
      tolerations: [trouble("not-ready"), trouble("unreachable")],
    },
  });
});

describe("service account", () => {
  test.each<[JsonObject, string | undefined]>([
    [{}, "default"],
    [{ serviceAccountName: "" }, "default"],
    [{ serviceAccountName: null }, "default"],
    [{ serviceAccountName: "web" }, "web"],
    [{ serviceAccount: "old" }, "old"],
  ])("%j runs as %s", (spec, name) => {
    expect(admitted(spec)["serviceAccountName"]).toBe(name);
  });

  test("a mirror pod gets no service account, but the other defaults", () => {
    const pod = { metadata: { annotations: { "kubernetes.io/config.mirror": "x" } }, spec: {} };
    const spec = specOf(admissionDefaults(pod));
    expect(Object.keys(spec).sort()).toEqual(["preemptionPolicy", "priority", "tolerations"]);
  });
});

describe("priority", () => {
  const classes: JsonObject[] = [
    { metadata: { name: "high" }, value: 1000, preemptionPolicy: "Never" },
    { metadata: { name: "low" }, value: -5 },
    { metadata: { name: "odd" }, value: "many" },
  ];
  const globals: JsonObject[] = [
    { metadata: { name: "g2" }, value: 20, globalDefault: true },
    { metadata: { name: "g1" }, value: 10, globalDefault: true, preemptionPolicy: "Never" },
    { metadata: { name: "g3" }, value: 1, globalDefault: false },
  ];

  test.each<[string, JsonObject, JsonObject[], JsonObject]>([
    ["no class", {}, classes, { priority: 0, preemptionPolicy: "PreemptLowerPriority" }],
    ["an empty class", { priorityClassName: "" }, classes, { priority: 0 }],
    ["a class", { priorityClassName: "high" }, classes, { priority: 1000, preemptionPolicy: "Never" }],
    [
      "a class that preempts",
      { priorityClassName: "low" },
      classes,
      { priority: -5, preemptionPolicy: "PreemptLowerPriority" },
    ],
    ["a class without a number", { priorityClassName: "odd" }, classes, { priority: 0 }],
    ["the cluster's", { priorityClassName: "system-cluster-critical" }, [], { priority: 2_000_000_000 }],
    [
      "the node's",
      { priorityClassName: "system-node-critical" },
      [],
      { priority: 2_000_001_000, preemptionPolicy: "PreemptLowerPriority" },
    ],
    [
      "the lowest global default",
      {},
      globals,
      { priorityClassName: "g1", priority: 10, preemptionPolicy: "Never" },
    ],
    [
      "a class before the default",
      { priorityClassName: "g2" },
      globals,
      { priorityClassName: "g2", priority: 20 },
    ],
    [
      "an explicit class",
      { priority: 7, preemptionPolicy: "Never" },
      [],
      { priority: 7, preemptionPolicy: "Never" },
    ],
  ])("%s", (_what, spec, priorityClasses, expected) => {
    expect(admitted(spec, priorityClasses)).toMatchObject(expected);
  });

  test("an unknown class gives no priority", () => {
    const spec = admitted({ priorityClassName: "missing" }, classes);
    expect([spec["priority"], spec["preemptionPolicy"]]).toEqual([undefined, undefined]);
  });
});

describe("tolerations", () => {
  test.each<[string, Json, string[]]>([
    ["every taint", { operator: "Exists" }, []],
    ["every taint for a while", { operator: "Exists", effect: "NoExecute", tolerationSeconds: 1 }, []],
    ["another effect", { operator: "Exists", effect: "NoSchedule" }, ["not-ready", "unreachable"]],
    [
      "one of them",
      { key: "node.kubernetes.io/not-ready", operator: "Exists", effect: "NoExecute" },
      ["unreachable"],
    ],
    ["one of them, any effect", { key: "node.kubernetes.io/unreachable", operator: "Exists" }, ["not-ready"]],
    // It does not tolerate the taint, whose value is empty; the plugin does not check that.
    [
      "one of them by value",
      { key: "node.kubernetes.io/not-ready", value: "x", effect: "NoExecute" },
      ["unreachable"],
    ],
    ["something else", { key: "gpu", operator: "Exists" }, ["not-ready", "unreachable"]],
  ])("%s", (_what, toleration, added) => {
    expect(admitted({ tolerations: [toleration] })["tolerations"]).toEqual([
      toleration,
      ...added.map(trouble),
    ]);
  });

  test("an update gets tolerations alone", () => {
    const { spec } = admissionDefaults({ spec: {} }, { operation: "UPDATE" });
    expect(spec).toEqual({ tolerations: [trouble("not-ready"), trouble("unreachable")] });
  });
});

test("is idempotent, loses nothing, and every pod tolerates not-ready and unreachable nodes", () => {
  const spec = fc.record(
    {
      serviceAccountName: fc.constantFrom("", "web", null),
      priorityClassName: fc.constantFrom("", "system-node-critical", "missing"),
      tolerations: fc.array(
        fc.record(
          {
            key: fc.constantFrom("", "x", "node.kubernetes.io/not-ready"),
            operator: fc.constant("Exists"),
            effect: fc.constantFrom("NoExecute", "NoSchedule", ""),
          },
          { requiredKeys: ["operator"] },
        ),
        { maxLength: 3 },
      ),
      extra: fc.jsonValue(),
    },
    { requiredKeys: [] },
  );
  fc.assert(
    fc.property(spec, (written) => {
      const pod = { spec: written as JsonObject };
      const before = JSON.stringify(pod);
      const once = admissionDefaults(pod);
      expect(JSON.stringify(pod)).toBe(before);
      expect(admissionDefaults(once)).toBe(once);
      expect(specOf(once)["extra"]).toEqual(written.extra);
      const all = specOf(once)["tolerations"] as Json[];
      for (const key of ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"]) {
        expect(all.some((toleration) => tolerates(toleration, { key, value: "", effect: "NoExecute" }))).toBe(
          true,
        );
      }
    }),
  );
});

test("a pod without a spec is unchanged", () => {
  for (const pod of [{}, { spec: null }, { spec: [] }]) expect(admissionDefaults(pod)).toBe(pod);
});
