import { describe, expect, test } from "vitest";
import { outside, outsideWith } from "../../../../test/builders/outside.ts";
import { placed, placedWith, SHOP } from "../../../../test/builders/placed.ts";
import { deployment, pod } from "../../../../test/builders/pod.ts";
import { clusterPolicy } from "../../../../test/builders/policy.ts";
import { requestFor } from "../../../../test/builders/request.ts";
import type { Fact, Need } from "../../../core/decision/need.ts";
import { at, type JsonObject } from "../../../core/json.ts";

const needOf = (resource: string, name: string): Need => ({ get: { resource, name } });
const NODE = needOf("nodes", "n1");
const PRIORITY = needOf("priorityclasses.scheduling.k8s.io", "high");
const RUNTIME = needOf("runtimeclasses.node.k8s.io", "kata");

const found = (object: JsonObject = {}): Fact => ({ found: object, complete: true });
const policy = (criteria: JsonObject, name = "p") =>
  clusterPolicy(name, { namespaceSelector: {}, podSelector: {}, ...criteria });

const ROWS: readonly [field: string, value: string, need: Need, kind: string][] = [
  ["nodeName", "n1", NODE, "Node n1"],
  ["priorityClassName", "high", PRIORITY, "PriorityClass high"],
  ["runtimeClassName", "kata", RUNTIME, "RuntimeClass kata"],
];

describe.each(ROWS)("%s", (field, value, need, shown) => {
  test("an existing object is written, and looked up once", async () => {
    const world = outsideWith([[need, found()]]);
    const { object, answer, evaluation } = await placedWith(
      world,
      [SHOP, policy({ [field]: value })],
      deployment(),
    );
    expect(at(object, "spec", "template", "spec", field)).toBe(value);
    expect(answer.warnings).toEqual([]);
    expect(world.fetches).toEqual([[need]]);
    expect(evaluation.unknown).toEqual([]);
  });

  test.each<[string, Fact]>([
    ["is missing", { absent: "NotFound" }],
    ["can't be looked up", { failed: "the API server is down" }],
  ])("a reference that %s is left out, and the rest applied", async (_what, fact) => {
    const known = [SHOP, policy({ [field]: value, nodeSelector: { zone: "a" } })];
    const { object, answer, evaluation } = await placedWith(outsideWith([[need, fact]]), known, deployment());
    expect(at(object, "spec", "template", "spec", field)).toBeUndefined();
    expect(at(object, "spec", "template", "spec", "nodeSelector")).toEqual({ zone: "a" });
    expect(answer.allowed).toBe(true);
    expect(answer.warnings).toHaveLength(1);
    expect(answer.warnings[0]).toContain(shown);
    expect(answer.warnings[0]).toContain("USHER-P20");
    expect(evaluation.unknown).toEqual([need]);
  });

  test("a missing object refuses if the policy has failurePolicy Fail, and nothing is changed", async () => {
    const known = [
      SHOP,
      policy({ nodeSelector: { zone: "a" } }, "another"),
      policy({ [field]: value, failurePolicy: "Fail" }),
    ];
    const { answer } = await placedWith(outside(), known, deployment());
    expect(answer).toMatchObject({ allowed: false, patch: [] });
    expect(answer.status?.message).toContain(shown);
    expect(answer.status?.message).toContain("USHER-P20");
  });

  test("the object's own value is not looked up", () => {
    const sent = deployment({ spec: { containers: [], [field]: "own" } });
    expect(placed([SHOP, policy({ [field]: value })], sent).answer.allowed).toBe(true);
  });

  test("a value that another policy's selector excludes is not looked up", () => {
    const other = clusterPolicy("p", {
      namespaceSelector: {},
      podSelector: { matchLabels: { app: "other" } },
      [field]: value,
    });
    expect(placed([SHOP, other], deployment()).answer.patch).toEqual([]);
  });
});

test("all needs are returned at once", async () => {
  const world = outside({ fact: () => found() });
  const known = [
    SHOP,
    policy({ priorityClassName: "high", runtimeClassName: "kata" }),
    policy({ nodeName: "n1" }, "q"),
  ];
  await placedWith(world, known, pod());
  expect(world.fetches).toEqual([[PRIORITY, RUNTIME, NODE]]);
});

test("a namespace first, then the references of the policies that select it", async () => {
  const namespace = needOf("namespaces", "shop");
  const world = outsideWith([
    [namespace, found(SHOP)],
    [PRIORITY, found()],
  ]);
  const red = clusterPolicy("p", {
    namespaceSelector: { matchLabels: { team: "red" } },
    podSelector: {},
    priorityClassName: "high",
  });
  const { object } = await placedWith(world, [red], pod());
  expect(world.fetches).toEqual([[namespace], [PRIORITY]]);
  expect(at(object, "spec", "priorityClassName")).toBe("high");
});

describe("a RuntimeClass with its own nodeSelector", () => {
  const CLASS = found({ scheduling: { nodeSelector: { arch: "arm" } } });

  test.each<[string, JsonObject, readonly JsonObject[], boolean]>([
    ["the pod sets nothing", {}, [], true],
    ["the pod sets the same", { nodeSelector: { arch: "arm" } }, [], true],
    ["the pod sets another value", { nodeSelector: { arch: "x86" } }, [], false],
    ["a later policy sets another value", {}, [policy({ nodeSelector: { arch: "x86" } }, "z")], false],
    [
      "the pod sets the same, so that a later policy can't",
      { nodeSelector: { arch: "arm" } },
      [policy({ nodeSelector: { arch: "x86" } }, "z")],
      true,
    ],
  ])("%s", async (_what, spec, others, written) => {
    const known = [SHOP, policy({ runtimeClassName: "kata" }), ...others];
    const { object, answer } = await placedWith(
      outsideWith([[RUNTIME, CLASS]]),
      known,
      pod({ spec: { containers: [], ...spec } }),
    );
    expect(at(object, "spec", "runtimeClassName")).toBe(written ? "kata" : undefined);
    expect(answer.warnings.some((one) => one.includes("USHER-P23"))).toBe(!written);
  });
});

test("on UPDATE nothing is looked up, because nothing new is added", () => {
  const request = requestFor(deployment(), { operation: "UPDATE", oldObject: deployment() });
  expect(placed([SHOP, policy({ nodeName: "n1" })], request).answer.patch).toEqual([]);
});
