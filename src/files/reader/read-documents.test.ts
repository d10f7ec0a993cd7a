import { describe, expect, test } from "vitest";
import { WRITE_IN_QUOTES } from "../../core/policy/problem.ts";
import { locateProblems, readManifests } from "./read-documents.ts";

const hintFor = (text: string, hint = WRITE_IN_QUOTES) => {
  const [manifest] = readManifests(text).manifests;
  const wanted = { document: manifest?.document ?? -1, path: ["gpu"], message: "must be a string", hint };
  const [found] = locateProblems(text, [wanted]);
  return found;
};

describe("advice to quote a value keeps its spelling", () => {
  test.each([
    ["gpu: yes", '"yes"'],
    ["gpu: Off", '"Off"'],
    ["gpu: y", '"y"'],
    ["gpu: 1.10", '"1.10"'],
    ["gpu: 0777", '"0777"'],
    ["gpu: 0x1F", '"0x1F"'],
    ["gpu: 1_000", '"1_000"'],
    ["gpu: +1e3", '"+1e3"'],
    ["{gpu: yes, b: 1}", '"yes"'],
    ["gpu: yes # a comment", '"yes"'],
    ['{"gpu": true}', '"true"'],
  ])("%s", (text, quoted) => {
    const found = hintFor(text);
    expect(found?.hint).toBe(`write it in quotes: ${quoted}`);
    expect(found?.frame.endsWith(`write it in quotes: ${quoted}`)).toBe(true);
    expect(text.startsWith(quoted.slice(1, -1), (found?.column ?? 0) - 1)).toBe(true);
  });

  test.each(["gpu: [yes]", "gpu: {a: b}", `gpu: ${"9".repeat(61)}`, "other: yes"])(
    "%s gets no advice",
    (text) => {
      expect(hintFor(text)?.hint).toBe("write it in quotes");
    },
  );

  test("other hints are unchanged", () => {
    expect(hintFor("gpu: yes", "did you mean b?")?.hint).toBe("did you mean b?");
  });
});
