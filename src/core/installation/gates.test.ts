import { describe, expect, test } from "vitest";
import { type Gate, Gates, parseGates } from "./gates.ts";

const DECLARED: readonly Gate[] = [
  { name: "TryThis", stage: "alpha", default: false, summary: "off until asked for" },
  { name: "KeepThat", stage: "beta", default: true, summary: "on until refused" },
];

describe("parseGates", () => {
  test.each<[string, boolean, boolean]>([
    ["", false, true],
    ["TryThis=true", true, true],
    ["KeepThat=false", false, false],
    [" TryThis=true , KeepThat=false ", true, false],
    ["TryThis=true,TryThis=false", false, true],
    [",,TryThis=true,", true, true],
  ])("%j", (text, tryThis, keepThat) => {
    const { gates, problems } = parseGates(text, DECLARED);
    expect(problems).toEqual([]);
    expect(gates.enabled("TryThis")).toBe(tryThis);
    expect(gates.enabled("KeepThat")).toBe(keepThat);
  });

  test.each<[string, string]>([
    ["TryThs=true", 'feature gate "TryThs" is not known; did you mean "TryThis"?'],
    ["Nonsense=true", 'feature gate "Nonsense" is not known; there are: TryThis, KeepThat'],
    ["TryThis", "feature gate TryThis: write TryThis=true or TryThis=false"],
    ["TryThis=", "feature gate TryThis: write TryThis=true or TryThis=false"],
    ["TryThis=yes", "feature gate TryThis: write TryThis=true or TryThis=false"],
    ["TryThis=true=true", "feature gate TryThis: write TryThis=true or TryThis=false"],
    ["__proto__=true", 'feature gate "__proto__" is not known; there are: TryThis, KeepThat'],
    ["=true", 'feature gate "" is not known; there are: TryThis, KeepThat'],
  ])("reports %j", (text, problem) => {
    expect(parseGates(text, DECLARED).problems).toEqual([problem]);
  });

  test("reports all problems at once, and valid gates still count", () => {
    const { gates, problems } = parseGates("Nope=true,TryThis=true,KeepThat=maybe", DECLARED);
    expect(problems).toHaveLength(2);
    expect(gates.enabled("TryThis")).toBe(true);
    expect(gates.enabled("KeepThat")).toBe(true);
  });

  test("reports that there are no gates", () => {
    expect(parseGates("A=true", []).problems).toEqual(['feature gate "A" is not known; there are none']);
  });
});

test("an undeclared gate is off, even if set", () => {
  expect(new Gates(DECLARED, new Map([["Other", true]])).enabled("Other")).toBe(false);
});
