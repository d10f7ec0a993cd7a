import { DEFAULT_INSTALLATION, type Installation } from "../../../core/installation/installation.ts";
import { at, type JsonObject, listAt, stringAt } from "../../../core/json.ts";
import { nameOf } from "../../../core/kubernetes/object.ts";
import type { Path } from "../../../core/path.ts";
import { idle, PROBLEM, type Problem, problem, warningProblem } from "../../../core/policy/problem.ts";
import type { View } from "../../../core/view/view.ts";
import { groupsIn } from "../groups/groups.ts";
import { CLUSTER, CONFIGS, POLICIES, READERS } from "../groups/policy.ts";
import { GROUP_CHECKS } from "./group-checks.ts";

/** The problems of an object that has groups, as the cluster would be with it. */
export function checkPolicy(
  resource: string,
  groupsPath: Path,
): (object: JsonObject, view: View, installation?: Installation) => readonly Problem[] {
  return (object, view, installation = DEFAULT_INSTALLATION) => {
    const own = READERS[resource]?.(object).problems ?? [];
    const name = nameOf(object);
    if (resource !== CONFIGS && name !== CLUSTER)
      return [
        ...own,
        idle(
          PROBLEM.noEffect,
          ["metadata", "name"],
          `has no effect: only the object named ${CLUSTER} counts`,
        ),
      ];
    const supposed = view.with([{ resource, namespace: "", name, object }]);
    const without = view.with([{ resource, namespace: "", name, object: undefined }]);
    const groups = groupsIn(supposed, installation);
    const all = groups.at(supposed, undefined);
    const elsewhere = new Set(
      groupsIn(without, installation)
        .at(without, undefined)
        .map((one) => one.name),
    );
    const context = { groups, all, view: supposed, installation };
    const found = listAt(object, ...groupsPath).flatMap((item, i) => {
      const path = [...groupsPath, i];
      const named = stringAt(item, "name") ?? "";
      const group = all.find((one) => one.name === named);
      const selector = at(item, "labelSelector");
      if (group === undefined)
        return [
          problem(
            [...path, "labelSelector"],
            `there is no group ${named}: a new group needs a labelSelector`,
          ),
        ];
      if (resource === POLICIES && selector !== undefined && selector !== null && elsewhere.has(named))
        return [
          problem(
            [...path, "labelSelector"],
            `the selector of group ${named} can't be changed: leave it out`,
          ),
        ];
      return GROUP_CHECKS.flatMap(({ severity, code, field, find }) => {
        const message = find(group, context);
        if (message === undefined) return [];
        return severity === "error"
          ? [problem([...path, field], message)]
          : [{ ...warningProblem([...path, field], message), ...(code === undefined ? {} : { code }) }];
      });
    });
    return [...own, ...found];
  };
}
