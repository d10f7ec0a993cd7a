import { expect, test } from "vitest";
import { LabelCap } from "./capped-label.ts";

test("the first so many have their own name, for good; the rest is other", () => {
  const capped = new LabelCap({ label: "policy", most: 2 });
  const name = (policy: string) => capped.bounded({ policy, outcome: "applied" });
  expect(["a", "b", "c", "a", "d", "b"].map((policy) => name(policy)["policy"])).toEqual([
    "a",
    "b",
    "other",
    "a",
    "other",
    "b",
  ]);
  expect(name("e")).toEqual({ policy: "other", outcome: "applied" });
});
