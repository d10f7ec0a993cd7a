import { applyPatch } from "rfc6902";
import { expect, test } from "vitest";
import { changesBetween } from "../../src/cli/drift/changes.ts";
import type { Json } from "../../src/core/json.ts";

const terms = ["affinity", "nodeAffinity"];

test.each<[string, Json | undefined, Json | undefined, string[]]>([
  ["nothing", { a: 1 }, { a: 1 }, []],
  ["a key that came", {}, { nodeSelector: { pool: "etcd" } }, ["+ nodeSelector.pool=etcd"]],
  ["a key that went", { nodeSelector: { pool: "etcd" } }, {}, ["- nodeSelector.pool=etcd"]],
  ["a value that changed", { schedulerName: "a" }, { schedulerName: "b" }, ["~ schedulerName a -> b"]],
  ["a list that came", {}, { tolerations: [{ key: "a" }] }, ['+ tolerations {"key":"a"}']],
  [
    "elements that came and went",
    { tolerations: [{ key: "a" }, { key: "b" }] },
    { tolerations: [{ key: "b" }, { key: "c" }] },
    ['- tolerations {"key":"a"}', '+ tolerations {"key":"c"}'],
  ],
  ["another order", { list: [1, 2] }, { list: [2, 1] }, ["~ list: in another order"]],
  ["a list in place of a map", { a: {} }, { a: [] }, ["~ a {} -> []"]],
  ["a map that is gone altogether", { [terms[0] ?? ""]: { x: { y: 1 } } }, undefined, ["- affinity.x.y=1"]],
])("%s", (_, before, after, changes) => {
  expect(changesBetween(before, after)).toEqual(changes);
});

test("a long value is cut, so that a table stays one", () => {
  const [change = ""] = changesBetween({}, { name: "x".repeat(500) });
  expect(change.length).toBeLessThan(120);
  expect(change).toMatch(/…$/);
});

test("something is said of every difference that a patch makes", () => {
  const before = { a: { b: [1, { c: 2 }] }, d: "x" };
  const patches = [
    { op: "add" as const, path: "/a/b/-", value: 3 },
    { op: "replace" as const, path: "/a/b/1/c", value: 5 },
    { op: "remove" as const, path: "/d" },
    { op: "add" as const, path: "/a/e", value: null },
  ];
  for (const patch of patches) {
    const after = structuredClone(before);
    applyPatch(after, [patch]);
    expect(changesBetween(before, after as Json), patch.path).not.toEqual([]);
  }
});
