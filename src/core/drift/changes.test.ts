import { applyPatch } from "rfc6902";
import { expect, test } from "vitest";
import type { Json } from "../json.ts";
import { changesBetween } from "./changes.ts";

const terms = ["affinity", "nodeAffinity"];

test.each<[string, Json | undefined, Json | undefined, string[]]>([
  ["nothing", { a: 1 }, { a: 1 }, []],
  ["an added key", {}, { nodeSelector: { pool: "etcd" } }, ["+ nodeSelector.pool=etcd"]],
  ["a removed key", { nodeSelector: { pool: "etcd" } }, {}, ["- nodeSelector.pool=etcd"]],
  ["a changed value", { schedulerName: "a" }, { schedulerName: "b" }, ["~ schedulerName a -> b"]],
  ["an added list", {}, { tolerations: [{ key: "a" }] }, ['+ tolerations {"key":"a"}']],
  [
    "added and removed elements",
    { tolerations: [{ key: "a" }, { key: "b" }] },
    { tolerations: [{ key: "b" }, { key: "c" }] },
    ['- tolerations {"key":"a"}', '+ tolerations {"key":"c"}'],
  ],
  ["reordered elements", { list: [1, 2] }, { list: [2, 1] }, ["~ list: reordered"]],
  ["a list instead of a map", { a: {} }, { a: [] }, ["~ a {} -> []"]],
  ["a removed map", { [terms[0] ?? ""]: { x: { y: 1 } } }, undefined, ["- affinity.x.y=1"]],
])("shows %s", (_, before, after, changes) => {
  expect(changesBetween(before, after)).toEqual(changes);
});

test("long values are cut", () => {
  const [change = ""] = changesBetween({}, { name: "x".repeat(500) });
  expect(change.length).toBeLessThan(120);
  expect(change).toMatch(/…$/);
});

test("every difference that a patch makes is reported", () => {
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
