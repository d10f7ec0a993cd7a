import { at, canonical, isObject, type Json, own, stringAt } from "../../../core/json.ts";
import { typeName } from "../../../core/kubernetes/field-error.ts";
import { checkQualifiedName } from "../../../core/kubernetes/names.ts";
import { isBoundSpec } from "../../../core/kubernetes/pod-state.ts";
import { schedulingGates as schema } from "../../../core/kubernetes/schemas.ts";
import type { Path } from "../../../core/path.ts";
import { problem } from "../../../core/policy/problem.ts";
import { listCriterion } from "./list-criterion.ts";
import { extendsElement } from "./unmet.ts";

/**
 * schedulingGates
 *
 * Field:    spec.schedulingGates
 * Merge:    gates that the pod does not have are appended. Skipped on a pod with a node, which the API server refuses together
 *           (USHER-P15).
 * Holds:    idempotent; order-independent but for the order of gates.
 * Update:   an existing pod only loses gates, which is how controllers open them: they are never restored there.
 */
export const schedulingGates = listCriterion({
  name: "schedulingGates",
  path: ["schedulingGates"],
  text: "scheduling gate",
  schema: schema
    .nullish()
    .describe("Gates to add to new pods. The scheduler ignores a pod until all its gates are removed."),
  check: checkGate,
  unique: ["name"],
  meaning: (element) => canonical(own(element, "name") ?? element),
  describe: (element) => stringAt(element, "name") ?? "",
  enforced: { meets: extendsElement, namedBy: "name" },
  mutability: { gatedPod: "gates can't be added to an existing pod", ungatedPod: true },
  consumedByPod: true,
  judgedBy: ["nodeName"],
  excluded: (podSpec) => (isBoundSpec(podSpec) ? "a pod with a node can't have scheduling gates" : undefined),
  contradictions: (_wanted, criteria) =>
    criteria.some(({ criterion }) => criterion.name === "nodeName")
      ? [
          problem(
            ["spec", "schedulingGates"],
            "nodeName and schedulingGates are mutually exclusive; remove one",
          ),
        ]
      : [],
});

function checkGate(value: Json, path: Path) {
  if (!isObject(value))
    return [{ path, message: `a scheduling gate must be an object, got ${typeName(value)}` }];
  const found = Object.keys(value)
    .filter((field) => field !== "name")
    .map((field): { path: Path; message: string } => ({
      path: [...path, field],
      message: "unknown field: a scheduling gate has only a name",
    }));
  const name = at(value, "name");
  const wrong = typeof name === "string" ? checkQualifiedName(name) : "required: the name of the gate";
  if (wrong !== undefined) found.push({ path: [...path, "name"], message: wrong });
  return found;
}
