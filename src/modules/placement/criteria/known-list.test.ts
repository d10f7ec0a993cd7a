import { expect, test } from "vitest";
import { canonical, type Json, stringAt } from "../../../core/json.ts";
import { type Elements, type KnownList, KnownLists } from "./known-list.ts";

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

/** The cached data of a readable list. */
function known(lists: KnownLists, elements: readonly Json[]): KnownList {
  const found = lists.of(tolerations, elements);
  if (found === undefined) throw new Error("the list should be readable");
  return found;
}

test("a list is read once, and follows appended elements", () => {
  const lists = new KnownLists();
  const elements: Json[] = [toleration("a")];
  const list = known(lists, elements);
  expect(list.has(canonical(toleration("a")))).toBe(true);
  expect(list.has(canonical(toleration("b")))).toBe(false);
  elements.push(toleration("b"));
  list.add(toleration("b"), { meaning: canonical(toleration("b")), key: "b" });
  expect(known(lists, elements)).toBe(list);
  expect(list.has(canonical(toleration("b")))).toBe(true);
});

test("undone elements are no longer known", () => {
  const lists = new KnownLists();
  const elements: Json[] = [toleration("a")];
  const list = known(lists, elements);
  elements.push(toleration("b"));
  list.add(toleration("b"), { meaning: canonical(toleration("b")), key: "b" });
  elements.length = 1;
  expect(known(lists, elements).has(canonical(toleration("b")))).toBe(false);
});

test("another list in its place is read again", () => {
  const lists = new KnownLists();
  expect(known(lists, [toleration("a")]).has(canonical(toleration("a")))).toBe(true);
  expect(known(lists, [toleration("b")]).has(canonical(toleration("a")))).toBe(false);
});

test("of elements with one key the first is found", () => {
  const list = known(new KnownLists(), [toleration("a", 5), toleration("a", 6)]);
  expect(list.has(canonical(toleration("a", 7)))).toBe(false);
  expect(list.withKey(tolerations.key(toleration("a", 7)))).toEqual(toleration("a", 5));
  expect(list.withKey(tolerations.key(toleration("b")))).toBeUndefined();
  expect(list.withKey(undefined)).toBeUndefined();
});

test.each<[string, readonly Json[], boolean]>([
  ["as many elements as are read", Array.from({ length: 1_024 }, (_, i) => toleration(`t${i}`)), true],
  ["one more", Array.from({ length: 1_025 }, (_, i) => toleration(`t${i}`)), false],
  ["more values", [Object.fromEntries(Array.from({ length: 40_000 }, (_, i) => [`k${i}`, "v"]))], false],
])("%s", (_what, elements, readable) => {
  const lists = new KnownLists();
  for (let asked = 0; asked < 2; asked++)
    expect(lists.of(tolerations, elements) !== undefined).toBe(readable);
});
