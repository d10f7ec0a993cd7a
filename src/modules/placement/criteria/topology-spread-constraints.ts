import { canonical, type Json, own, stringAt } from "../../../core/json.ts";
import { topologySpreadConstraints as schema } from "../../../core/kubernetes/schemas.ts";
import { checkSpread } from "./check-elements.ts";
import { IMMUTABLE } from "./criterion.ts";
import { listCriterion } from "./list-criterion.ts";
import { extendsElement } from "./unmet.ts";

/**
 * topologySpreadConstraints
 *
 * Field:    spec.topologySpreadConstraints
 * Merge:    constraints for a topology key and whenUnsatisfiable that the pod does not have are appended; the pod's own is kept
 *           (USHER-P14), as the API server refuses a second one.
 * Holds:    idempotent; order-independent except for which policy wins a conflict. Only DoNotSchedule is enforced.
 * Update:   immutable on pods and Jobs; mutable in templates.
 */
export const topologySpreadConstraints = listCriterion({
  name: "topologySpreadConstraints",
  path: ["topologySpreadConstraints"],
  text: "topology spread constraint",
  schema: schema
    .nullish()
    .describe(
      "How to spread matching pods among topology domains. A constraint that the pod has for the same topologyKey and whenUnsatisfiable is kept.",
    ),
  check: checkSpread,
  unique: ["topologyKey", "whenUnsatisfiable"],
  meaning: canonical,
  key: (element) => `${text(element, "topologyKey")} ${text(element, "whenUnsatisfiable")}`,
  describe: (element) => `by ${text(element, "topologyKey")}, ${text(element, "whenUnsatisfiable")}`,
  enforced: {
    meets: extendsElement,
    namedBy: "topologyKey",
    only: (element) => own(element, "whenUnsatisfiable") === "DoNotSchedule",
  },
  kubelet: "ignores",
  mutability: IMMUTABLE,
});

function text(element: Json, member: string): string {
  return stringAt(element, member) ?? "";
}
