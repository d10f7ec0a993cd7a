import { at, isObject, type JsonObject, listAt } from "../../../core/json.ts";
import { checkLabelKey, checkLabelValue } from "../../../core/kubernetes/names.ts";
import { type Problem, problem } from "../../../core/policy/problem.ts";

/** Whether keys and values of selectors are label keys and values. The path is the selector's, as upstream's is. */
export function checkSelectors(spec: JsonObject): Problem[] {
  return listAt(spec, "limits").flatMap((rule, i) => {
    const selector = at(rule, "selector");
    if (!isObject(selector)) return [];
    const wrong = Object.entries(selector).flatMap(([key, value]) => [
      checkLabelKey(key),
      typeof value === "string" ? checkLabelValue(value) : undefined,
    ]);
    return wrong.flatMap((text) =>
      text === undefined ? [] : [problem(["spec", "limits", i, "selector"], text)],
    );
  });
}
