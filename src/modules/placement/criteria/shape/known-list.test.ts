import { expect, test } from "vitest";
import type { Json } from "../../../../core/json.ts";
import { WorkBudget } from "../../merge/work-budget.ts";
import { LISTS } from "../places.ts";
import { KnownLists } from "./known-list.ts";

const tolerations = LISTS.find(({ field }) => field === "tolerations");
if (tolerations === undefined) throw new Error("there are no tolerations");
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
  expect(known.has(toleration("a"))).toBe(true);
  expect(known.has(toleration("b"))).toBe(false);
  elements.push(toleration("b"));
  known.add(toleration("b"), undefined);
  expect(lists.of(tolerations, elements, new WorkBudget())).toBe(known);
  expect(known.has(toleration("b"))).toBe(true);
});

test("what was taken back is not known any more", () => {
  const lists = new KnownLists();
  const elements: Json[] = [toleration("a")];
  const known = lists.of(tolerations, elements, new WorkBudget());
  elements.push(toleration("b"));
  known.add(toleration("b"), undefined);
  elements.length = 1;
  expect(lists.of(tolerations, elements, new WorkBudget()).has(toleration("b"))).toBe(false);
});

test("another list in its place is read anew", () => {
  const lists = new KnownLists();
  expect(lists.of(tolerations, [toleration("a")], new WorkBudget()).has(toleration("a"))).toBe(true);
  expect(lists.of(tolerations, [toleration("b")], new WorkBudget()).has(toleration("a"))).toBe(false);
});

test("of one kind with another is what differs in its time alone; the first of them is told", () => {
  const known = new KnownLists().of(tolerations, [toleration("a", 5), toleration("a", 6)], new WorkBudget());
  expect(known.has(toleration("a", 7))).toBe(false);
  expect(known.other(tolerations.key?.(toleration("a", 7)))).toEqual(toleration("a", 5));
  expect(known.other(tolerations.key?.(toleration("b")))).toBeUndefined();
  expect(known.other(undefined)).toBeUndefined();
});
