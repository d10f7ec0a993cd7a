import { expect, test } from "vitest";
import type { Json } from "../json.ts";
import { taintsOf } from "./taints.ts";

test("reads the taints of a node, without invalid ones", () => {
  const taints = [
    { key: "a", value: "x", effect: "NoSchedule" },
    { key: "b", effect: "NoExecute", timeAdded: "2026-01-01T00:00:00Z" },
    { key: "c", value: null, effect: "PreferNoSchedule" },
    { key: "d" },
    { effect: "NoSchedule" },
    null,
    "e:NoSchedule",
  ];
  expect(taintsOf({ spec: { taints } })).toEqual([
    { key: "a", value: "x", effect: "NoSchedule" },
    { key: "b", value: "", effect: "NoExecute" },
    { key: "c", value: "", effect: "PreferNoSchedule" },
  ]);
});

test.each<Json>([{}, { spec: null }, { spec: { taints: null } }, { spec: { taints: {} } }, { spec: [] }])(
  "%j has no taints",
  (node) => {
    expect(taintsOf(node as never)).toEqual([]);
  },
);
