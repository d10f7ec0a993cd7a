import { type CompiledSelector, labelsMatching } from "../kubernetes/selectors/label-selector.ts";
import type { Path } from "../path.ts";
import { idle, PROBLEM, type Problem } from "./problem.ts";

/** A selector whose requirements contradict each other. One that is absent is the affair of its kind: there it may be optional. */
export function contradictorySelector(selector: CompiledSelector | undefined, path: Path): Problem[] {
  if (selector?.kind !== "requirements" || labelsMatching([selector]) !== undefined) return [];
  return [idle(PROBLEM.matchesNothing, path, "can match nothing: no labels meet all of its requirements")];
}
