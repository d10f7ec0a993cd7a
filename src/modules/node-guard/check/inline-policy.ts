import { type JsonObject, listAt, stringAt } from "../../../core/json.ts";
import { type Problem, problem } from "../../../core/policy/problem.ts";
import { prepareGroups } from "../groups/policy.ts";

/** Of a group whose selector is empty. */
export const SELECTS_ALL = "selects every node: if that is meant, add AllNodes to acknowledge";

/** Problems of a policy inside usher's configuration, as far as they are known without a cluster. */
export function inlineProblems(policy: JsonObject): readonly Problem[] {
  const groups = listAt(policy, "groups");
  const { groups: prepared, problems } = prepareGroups(groups, "inline", ["groups"]);
  const errors = problems.filter(({ severity }) => severity === "error");
  const everywhere = prepared.flatMap(({ name, selector, options }) => {
    if (selector?.compiled.kind !== "everything" || options.acknowledge?.includes("AllNodes")) return [];
    const i = groups.findIndex((group) => stringAt(group, "name") === name);
    return [problem(["groups", i, "labelSelector"], SELECTS_ALL)];
  });
  return [...errors, ...everywhere];
}
