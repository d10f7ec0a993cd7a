import { expect, test } from "vitest";
import { canonical, type Json, stringAt } from "../../../../core/json.ts";
import { WorkBudget } from "../../merge/work-budget.ts";
import { type Elements, KnownLists } from "./known-list.ts";

const tolerations = {
  meaning: canonical,
  key: (element: Json) => stringAt(element, "key") ?? "",
} satisfies Elements;
const toleration = (key: string, seconds?: number) => ({
  key,
  operator: "Exists",
  effect: "NoExecute",
  ...(seconds === undefined ? {} : { tolerationSeconds: seconds }),
});

test("a list is read once, and follows what is added at its end", () => {
  const lists = new KnownLists();
  const elements: Json[] = [toleration("a")];
  const known = lists.of(tolerations, elements, new WorkBudget());
  expect(known.has(canonical(toleration("a")))).toBe(true);
  expect(known.has(canonical(toleration("b")))).toBe(false);
  elements.push(toleration("b"));
  known.add(toleration("b"), { meaning: canonical(toleration("b")), key: "b" }, undefined);
  expect(lists.of(tolerations, elements, new WorkBudget())).toBe(known);
  expect(known.has(canonical(toleration("b")))).toBe(true);
});

test("what was undone is no longer known", () => {
  const lists = new KnownLists();
  const elements: Json[] = [toleration("a")];
  const known = lists.of(tolerations, elements, new WorkBudget());
  elements.push(toleration("b"));
  known.add(toleration("b"), { meaning: canonical(toleration("b")), key: "b" }, undefined);
  elements.length = 1;
  expect(lists.of(tolerations, elements, new WorkBudget()).has(canonical(toleration("b")))).toBe(false);
});

test("another list in its place is read anew", () => {
  const lists = new KnownLists();
  expect(lists.of(tolerations, [toleration("a")], new WorkBudget()).has(canonical(toleration("a")))).toBe(
    true,
  );
  expect(lists.of(tolerations, [toleration("b")], new WorkBudget()).has(canonical(toleration("a")))).toBe(
    false,
  );
});

test("of elements with one key the first is found", () => {
  const known = new KnownLists().of(tolerations, [toleration("a", 5), toleration("a", 6)], new WorkBudget());
  expect(known.has(canonical(toleration("a", 7)))).toBe(false);
  expect(known.withKey(tolerations.key(toleration("a", 7)))).toEqual(toleration("a", 5));
  expect(known.withKey(tolerations.key(toleration("b")))).toBeUndefined();
  expect(known.withKey(undefined)).toBeUndefined();
});
