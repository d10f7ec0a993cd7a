import { expect, test } from "vitest";
import { parseSelectorText } from "./selector-text.ts";

function picks(text: string, labels: Record<string, string> | undefined): boolean | string {
  const selector = parseSelectorText(text);
  return "problem" in selector ? selector.problem : selector.matches(labels);
}

test.each([
  ["", {}, true],
  ["app=web", { app: "web" }, true],
  ["app==web", { app: "web" }, true],
  ["app = web , tier=db", { app: "web", tier: "db" }, true],
  ["app=web,tier=db", { app: "web" }, false],
  ["app!=web", { app: "web" }, false],
  ["app!=web", {}, true],
  ["app=", { app: "" }, true],
  ["app", { app: "" }, true],
  ["app", {}, false],
  ["!app", {}, true],
  ["! app", { app: "x" }, false],
  ["app in (web, db)", { app: "db" }, true],
  ["app in (web, db)", {}, false],
  ["app notin (web,db)", {}, true],
  ["app notin (web,db),tier", { app: "x", tier: "y" }, true],
  ["app in (web),tier=db,!old", { app: "web", tier: "db" }, true],
  ["a.b/c-d=e_f", { "a.b/c-d": "e_f" }, true],
  ["size>2", { size: "10" }, true],
  ["size<2", { size: "10" }, false],
  ["size>2", { size: "big" }, false],
])("%j on %j gives %j", (text, labels, expected) => {
  expect(picks(text, labels)).toBe(expected);
});

test.each([
  "app in (",
  "app in web",
  "=web",
  "a=b,",
  "a=b,,c",
  "app in (a b)",
  "a=b c",
  "-a",
  "size>big",
  "a=b=c",
])("rejects %j with an error", (text) => {
  expect(picks(text, {})).toContain("is not a label selector");
});

test("inherited properties do not count as labels", () => {
  expect(picks("constructor", {})).toBe(false);
  expect(picks("toString", undefined)).toBe(false);
});
