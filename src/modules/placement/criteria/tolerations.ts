import { z } from "zod";
import { type Json, type JsonObject, own, stringAt } from "../../../core/json.ts";
import { MAX_TOLERATIONS } from "../../../core/kubernetes/schemas/bounds.ts";
import { toleration } from "../../../core/kubernetes/schemas.ts";
import {
  CoveringTolerations,
  checkToleration,
  covers,
  tolerationMeaning,
} from "../../../core/kubernetes/tolerations.ts";
import { listCriterion } from "./list-criterion.ts";

/**
 * tolerations
 *
 * Field:    spec.tolerations
 * Merge:    tolerations that the pod does not have are appended; one that differs from the pod's in its seconds only is skipped
 *           (USHER-P14); one that a wider toleration of the pod's own covers is not added.
 * Holds:    idempotent; order-independent except for which policy wins a conflict.
 * Update:   appended on gated pods; mutable on suspended Jobs and in templates.
 */
export const tolerations = listCriterion({
  name: "tolerations",
  path: ["tolerations"],
  text: "toleration",
  schema: z.array(toleration).max(MAX_TOLERATIONS).nullish().describe("Tolerations to add to the pod."),
  check: checkToleration,
  meaning: tolerationMeaning,
  key,
  describe,
  covering: (elements) => {
    const tolerations = new CoveringTolerations(elements);
    return (element) => tolerations.cover(element);
  },
  enforced: { meets: covers, namedBy: "key" },
  mutability: { ungatedPod: true },
});

function text(element: Json, member: string): string {
  return stringAt(element, member) ?? "";
}

/** All but the seconds. */
function key(element: Json): string {
  const operator = text(element, "operator");
  const value = operator === "Exists" ? "" : text(element, "value");
  return JSON.stringify([text(element, "key"), operator || "Equal", value, text(element, "effect")]);
}

/** As kubectl writes taints: `pool=etcd:NoSchedule`. */
function describe(element: JsonObject): string {
  const taintKey = text(element, "key");
  const operator = text(element, "operator");
  const sign = operator === "Gt" ? ">" : operator === "Lt" ? "<" : "=";
  const taint =
    operator === "Exists" ? taintKey || "every taint" : `${taintKey}${sign}${text(element, "value")}`;
  const effect = text(element, "effect");
  const seconds = own(element, "tolerationSeconds");
  return `${taint}${effect === "" ? "" : `:${effect}`}${typeof seconds === "number" ? ` for ${seconds}s` : ""}`;
}
