import { at, type Json, type JsonObject, listAt } from "../../../core/json.ts";
import { type Problem, problem } from "../../../core/policy/problem.ts";
import { type NamePattern, type PatternProblem, readPattern, stepsOf } from "./pattern.ts";
import type { NodeRule } from "./rule.ts";

/**
 * Whether a rule matches a node by name; its nodeSelector is not checked. A rule without patterns matches every name, but only with a
 * nodeSelector, and only if both are valid.
 */
export function matchesName(rule: NodeRule, name: string): boolean {
  if (rule.patterns.length === 0) return rule.selector !== undefined && !rule.coversEveryNode;
  return rule.patterns.some((pattern) => pattern.matches(name));
}

/** The valid patterns of a rule; the others become problems. */
export function patternsOf(spec: JsonObject, problems: Problem[]): NamePattern[] {
  const patterns: NamePattern[] = [];
  const path = ["spec", "nodeNamePatterns"];
  const written = at(spec, "nodeNamePatterns");
  if (written !== undefined && written !== null && !Array.isArray(written))
    problems.push(problem(path, "must be an array of patterns"));
  let steps = 0;
  for (const [i, source] of listAt(spec, "nodeNamePatterns").entries()) {
    const cost = typeof source === "string" ? stepsOf(source) : 0;
    const affordable = steps + cost <= RULE_STEPS;
    if (affordable) steps += cost;
    const read = typeof source !== "string" ? NO_PATTERN : affordable ? readPattern(source) : TOO_MUCH;
    if ("matches" in read) patterns.push(read);
    else problems.push(problem([...path, i], describePattern(source, read)));
  }
  return patterns;
}

/** 256 patterns of 64 characters, or fewer with counts; whole names cost nothing. Compiling them takes half a second at most. */
const RULE_STEPS = 16_384;

const NO_PATTERN: PatternProblem = { message: "must be a string", position: 0 };
const TOO_MUCH: PatternProblem = {
  message: "is ignored: the patterns of the rule exceed its cost limit; use several rules, or smaller counts",
  position: undefined,
};

/** `"worker-[": missing closing ] (at character 8: "[")` */
export function describePattern(source: Json, { message, position }: PatternProblem): string {
  const text = typeof source === "string" ? source : JSON.stringify(source);
  const whole = text.length > 60 ? `${text.slice(0, 60)}…` : text;
  return `"${whole}" ${message.startsWith("is ") ? message : `is not a valid pattern: ${message}`}${placeIn(text, position)}`;
}

function placeIn(text: string, position: number | undefined): string {
  if (position === undefined) return "";
  const rest = text.slice(position, position + 12);
  return ` (at character ${position + 1}${rest === "" ? "" : `: "${rest}"`})`;
}
