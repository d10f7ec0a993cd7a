import { expect, test } from "vitest";
import { CONDITION_LENGTH, conditionOf, conditions, type ObservedCondition } from "./condition.ts";

const THEN = Date.UTC(2026, 0, 2, 3, 4, 5, 678);
const NOW = THEN + 60_000;
const valid: ObservedCondition = { type: "Valid", holds: true, reason: "Usable", message: "in use" };

test("a condition matches its schema, with seconds and the observed generation", () => {
  const made = conditionOf(valid, 3, {}, THEN);
  expect(made).toEqual({
    type: "Valid",
    status: "True",
    reason: "Usable",
    message: "in use",
    lastTransitionTime: "2026-01-02T03:04:05Z",
    observedGeneration: 3,
  });
  expect(conditions("Valid: whether it is.").parse([made])).toEqual([made]);
  expect(conditionOf(valid, undefined, {}, THEN)).not.toHaveProperty("observedGeneration");
});

test("the time changes only with the status of its own type", () => {
  const before = { conditions: [conditionOf(valid, 1, {}, THEN)] };
  const same = conditionOf({ ...valid, reason: "Doubtful", message: "other words" }, 2, before, NOW);
  expect(same).toMatchObject({ reason: "Doubtful", lastTransitionTime: "2026-01-02T03:04:05Z" });
  const other = conditionOf({ ...valid, holds: false }, 2, before, NOW);
  expect(other).toMatchObject({ status: "False", lastTransitionTime: "2026-01-02T03:05:05Z" });
  const second = conditionOf({ ...valid, type: "Effective" }, 2, before, NOW);
  expect(second).toMatchObject({ lastTransitionTime: "2026-01-02T03:05:05Z" });
});

test.each([{ conditions: "none" }, { conditions: [null, 7, { type: "Valid", status: "True" }] }])(
  "a malformed status (%j) is harmless",
  (before) => {
    expect(conditionOf(valid, 1, before, NOW)["lastTransitionTime"]).toBe("2026-01-02T03:05:05Z");
  },
);

test("a long message is cut", () => {
  const { message } = conditionOf({ ...valid, message: "x".repeat(9_999) }, 1, {}, NOW);
  expect(message).toHaveLength(CONDITION_LENGTH);
});
