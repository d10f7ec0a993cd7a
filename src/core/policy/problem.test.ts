import { expect, test } from "vitest";
import { describeProblem, type Problem, problem, warningProblem } from "./problem.ts";

test.each<[Problem, string]>([
  [
    problem(["spec", "tolerations", 0, "operator"], '"Exist" is not an operator', 'did you mean "Exists"?'),
    'spec.tolerations[0].operator: "Exist" is not an operator; did you mean "Exists"?',
  ],
  [problem([], "must be an object"), "must be an object"],
  [warningProblem(["spec", "a/b"], "has no effect"), "spec[a/b]: has no effect"],
])("%j", (found, text) => {
  expect(describeProblem(found)).toBe(text);
});

test("an error and a warningProblem differ in weight only, and an absent hint is absent", () => {
  expect(problem(["a"], "m")).toEqual({ path: ["a"], message: "m", severity: "error" });
  expect(warningProblem(["a"], "m")).toEqual({ path: ["a"], message: "m", severity: "warning" });
  expect("hint" in problem(["a"], "m")).toBe(false);
  expect(warningProblem(["a"], "m", "h").hint).toBe("h");
});
