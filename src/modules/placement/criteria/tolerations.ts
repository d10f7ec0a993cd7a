import { z } from "zod";
import { type Json, type JsonObject, own, stringAt } from "../../../core/json.ts";
import { celValue } from "../../../core/kubernetes/cel.ts";
import { MAX_TOLERATIONS } from "../../../core/kubernetes/schemas/bounds.ts";
import { toleration } from "../../../core/kubernetes/schemas.ts";
import {
  CoveringTolerations,
  checkToleration,
  covers,
  tolerationMeaning,
} from "../../../core/kubernetes/tolerations.ts";
import { distinct, fieldOf, type Variable } from "./cel.ts";
import { listCriterion } from "./list-criterion.ts";

const PATH = ["tolerations"];

/** A policy's tolerations with the defaults of each filled in. Of two that differ in seconds alone the first counts. */
function plain(wanted: readonly JsonObject[]): JsonObject[] {
  const all = wanted.map((toleration) => {
    const operator = text(toleration, "operator") || "Equal";
    const seconds = own(toleration, "tolerationSeconds");
    return {
      toleration,
      key: text(toleration, "key"),
      operator,
      value: operator === "Exists" ? "" : text(toleration, "value"),
      effect: text(toleration, "effect"),
      seconds: typeof seconds === "number" ? [Math.max(0, seconds)] : [],
    };
  });
  return distinct(all, ({ key, operator, value, effect }) => [key, operator, value, effect]);
}

const OPERATOR = 't.?operator.orValue("")';

/** The pod's tolerations in the same form. */
const PRESENT: Variable = {
  name: "tolerations",
  expression: `dyn(${fieldOf(PATH)}.orValue([]).map(t, {${[
    '"key": dyn(t.?key.orValue(""))',
    `"operator": dyn(${OPERATOR} == "" ? "Equal" : ${OPERATOR})`,
    `"value": dyn(${OPERATOR} == "Exists" ? "" : t.?value.orValue(""))`,
    '"effect": dyn(t.?effect.orValue(""))',
    '"seconds": dyn([t.?tolerationSeconds].filter(s, s.hasValue()).map(s, s.value() < 0 ? 0 : s.value()))',
  ].join(", ")}}))`,
};

/** Whether toleration `p` tolerates all that `e` does, and as long; see `covers` in core/kubernetes/tolerations.ts. */
const COVERS = [
  '(p.effect == "" || p.effect == e.effect)',
  '(p.key == "" || p.key == e.key)',
  '(p.operator == "Exists" || (p.operator == "Equal" && e.operator == "Equal" && p.value == e.value))',
  '(!(e.effect in ["", "NoExecute"]) || p.seconds.size() == 0 || (e.seconds.size() > 0 && p.seconds[0] >= e.seconds[0]))',
].join(" && ");

/** Tolerations that differ in seconds alone. */
const SAME_KEY = "p.key == e.key && p.operator == e.operator && p.value == e.value && p.effect == e.effect";

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
  path: PATH,
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
  inCel: {
    variables: [PRESENT],
    present: "variables.tolerations",
    elements: plain,
    excludes: `(${SAME_KEY}) || (${COVERS})`,
    written: "e.toleration",
    meets: (element) => `${celValue(plain([element]))}.all(e, variables.tolerations.exists(p, ${COVERS}))`,
  },
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
