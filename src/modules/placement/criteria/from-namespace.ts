/**
 * Values that a ClusterPodSchedulingPolicy takes from the namespace of the object, so that one policy serves every team. They are a
 * field of usher's own beside those of kupid, and become ordinary criteria before anything is merged: merge rules, provenance, drift and
 * enforcement know nothing of them.
 */
import { z } from "zod";
import { at, equal, isObject, type Json, type JsonObject, listAt, stringAt } from "../../../core/json.ts";
import { celString } from "../../../core/kubernetes/cel.ts";
import { checkLabelValue } from "../../../core/kubernetes/names.ts";
import {
  celRules,
  KEY_LENGTH,
  LABEL_KEY_PATTERN,
  LABEL_LENGTH,
  LABEL_VALUE_PATTERN,
} from "../../../core/kubernetes/schemas/bounds.ts";
import { type Problem, problem } from "../../../core/policy/problem.ts";
import { distinct, MARK, type NamespaceValue } from "./cel.ts";
import { parseCriteria } from "./criteria.ts";
import type { Criteria } from "./criterion.ts";
import { REQUIRED_TERMS } from "./node-term.ts";

/** A cluster has few dimensions that tell teams apart. */
const MAX_ENTRIES = 16;

const key = (description: string) =>
  z.string().min(1).max(KEY_LENGTH).meta({ pattern: LABEL_KEY_PATTERN, description });

const source = {
  label: key("The label of the namespace whose value counts.").optional(),
  annotation: key("The annotation of the namespace whose value counts.").optional(),
};

const ONE_OF = {
  rule: "has(self.label) != has(self.annotation)",
  message: "either label or annotation is required",
};

const isOneOf = (one: { readonly label?: unknown; readonly annotation?: unknown }) =>
  (one.label === undefined) !== (one.annotation === undefined);

function from<Shape extends z.ZodRawShape>(shape: Shape, description: string) {
  return z
    .strictObject({ ...shape, ...source })
    .refine((one) => isOneOf(one as { label?: unknown; annotation?: unknown }), { error: ONE_OF.message })
    .meta({ description, ...celRules(ONE_OF) });
}

function list<Item extends z.ZodType>(item: Item, description: string) {
  return z.array(item).max(MAX_ENTRIES).nullish().meta({ description, "x-kubernetes-list-type": "atomic" });
}

export const fromNamespaceSchema = z
  .strictObject({
    nodeSelector: z
      .record(z.string(), from({}, "Where the value of the node label comes from."))
      .refine((map) => Object.keys(map).length <= MAX_ENTRIES, {
        error: `has too many entries: at most ${MAX_ENTRIES} are allowed`,
      })
      .nullish()
      .meta({
        description: "Node labels of spec.nodeSelector whose value is that of the namespace, by key.",
        maxProperties: MAX_ENTRIES,
        ...celRules({
          rule: `self.all(key, key.size() <= ${KEY_LENGTH} && key.matches('${LABEL_KEY_PATTERN}'))`,
          message: "fromNamespace.nodeSelector has a key that is not a label key",
        }),
      }),
    nodeAffinity: list(
      from({ key: key("The node label that must have the value.") }, "A requirement with the operator In."),
      "Requirements with the operator In and the value of the namespace, added to every required node selector term of the policy, or as a term of its own.",
    ),
    tolerations: list(
      from(
        {
          key: key("The key of the taints that are tolerated."),
          effect: z
            .enum(["NoSchedule", "PreferNoSchedule", "NoExecute"])
            .optional()
            .describe("The effect of the taints that are tolerated. Defaults to every effect."),
        },
        "A toleration with the operator Equal.",
      ),
      "Tolerations with the operator Equal and the value of the namespace.",
    ),
  })
  .describe(
    "Values that come from labels or annotations of the object's namespace, so that one policy serves every team. The policy is skipped in a namespace without one of them.",
  );

/** Where one value comes from. */
interface Source {
  readonly from: "labels" | "annotations";
  readonly key: string;
}

/** The criteria of a policy in one namespace; or why the policy is skipped there. */
export type Resolved = { readonly criteria: Criteria } | { readonly skipped: string };

/** The part of a policy that is known only with a namespace. */
export class FromNamespace {
  readonly #spec: JsonObject;
  readonly #given: JsonObject;

  constructor(spec: JsonObject, given: JsonObject) {
    this.#spec = spec;
    this.#given = given;
  }

  /** The values of a namespace, as a trace shows them: `team=red`. */
  describe(namespace: JsonObject): string[] {
    return [...new Set(sourcesIn(this.#given).map((one) => `${one.key}=${valueIn(namespace, one) ?? ""}`))];
  }

  /** The values as expressions find them when a pod is created. */
  get values(): readonly NamespaceValue[] {
    return distinctSources(this.#given).map((one, i) => ({
      mark: markOf(i),
      text: `the ${nounOf(one)} ${one.key} of the namespace`,
      value: celValueOf(one),
    }));
  }

  /**
   * The criteria with marks in place of values. Impossible where what is compiled would depend on the values: they may
   * contradict, or repeat, another value of the policy.
   */
  marked(): { readonly criteria: Criteria } | { readonly impossible: string } {
    if (MARK.test(JSON.stringify(this.#spec)))
      return { impossible: "the policy has a text that stands for values while it is compiled; change it" };
    const twice = namedTwice(this.#spec, this.#given);
    if (twice !== undefined)
      return { impossible: `the policy names ${twice} twice, and whether both fit depends on the namespace` };
    const sources = distinctSources(this.#given);
    const mark = (one: Source) => markOf(sources.findIndex((other) => equal({ ...other }, { ...one })));
    const problems: Problem[] = [];
    const criteria = parseCriteria(withValues(this.#spec, this.#given, mark), problems);
    const [first] = problems.filter(({ severity }) => severity === "error");
    return first === undefined ? { criteria } : { impossible: first.message };
  }

  resolve(namespace: JsonObject): Resolved {
    const missing = sourcesIn(this.#given).find((one) => valueIn(namespace, one) === undefined);
    const name = stringAt(namespace, "metadata", "name") ?? "";
    if (missing !== undefined)
      return { skipped: `namespace ${name} has no ${nounOf(missing)} ${missing.key}` };
    const wrong = sourcesIn(this.#given).find(
      (one) => checkLabelValue(valueIn(namespace, one) ?? "") !== undefined,
    );
    if (wrong !== undefined)
      return {
        skipped: `the ${nounOf(wrong)} ${wrong.key} of namespace ${name} is not the value of a label`,
      };
    const problems: Problem[] = [];
    const criteria = parseCriteria(
      withValues(this.#spec, this.#given, (one) => valueIn(namespace, one) ?? ""),
      problems,
    );
    const [first] = problems.filter(({ severity }) => severity === "error");
    return first === undefined
      ? { criteria }
      : { skipped: `with the values of namespace ${name}: ${first.message}` };
  }
}

/** The part of a spec that depends on the namespace, with problems that it has whatever the values are. */
export function parseFromNamespace(spec: JsonObject, problems: Problem[]): FromNamespace | undefined {
  const given = spec["fromNamespace"];
  if (given === undefined || given === null) return undefined;
  if (!isObject(given) || sourcesIn(given).length === 0) {
    problems.push(problem(["spec", "fromNamespace"], "must have nodeSelector, nodeAffinity or tolerations"));
    return undefined;
  }
  for (const name of Object.keys(isObject(given["nodeSelector"]) ? given["nodeSelector"] : {}))
    if (at(spec, "nodeSelector", name) !== undefined)
      problems.push(
        problem(["spec", "fromNamespace", "nodeSelector", name], "is set by spec.nodeSelector as well"),
      );
  const own: Problem[] = [];
  parseCriteria(spec, own);
  const together: Problem[] = [];
  parseCriteria(
    withValues(spec, given, () => "value"),
    together,
  );
  const known = new Set(own.map(({ message }) => message));
  for (const { message, severity } of together)
    if (severity === "error" && !known.has(message))
      problems.push(problem(["spec", "fromNamespace"], message));
  return new FromNamespace(spec, given);
}

function sourcesIn(given: JsonObject): Source[] {
  const selected = isObject(given["nodeSelector"]) ? Object.values(given["nodeSelector"]) : [];
  return [...selected, ...listAt(given, "nodeAffinity"), ...listAt(given, "tolerations")].flatMap((one) => {
    const found = sourceOf(one);
    return found === undefined ? [] : [found];
  });
}

function sourceOf(value: Json | undefined): Source | undefined {
  const label = stringAt(value, "label");
  const annotation = stringAt(value, "annotation");
  if (label !== undefined) return { from: "labels", key: label };
  return annotation === undefined ? undefined : { from: "annotations", key: annotation };
}

function valueIn(namespace: JsonObject, { from: field, key: name }: Source): string | undefined {
  const value = stringAt(namespace, "metadata", field, name);
  // An empty value names no team.
  return value === "" ? undefined : value;
}

function distinctSources(given: JsonObject): Source[] {
  return distinct(
    sourcesIn(given).map((one) => ({ ...one })),
    (one) => one,
  );
}

const markOf = (i: number) => `fromNamespace${i}`;

/** In CEL, as `valueIn` and the check of label values have it. */
function celValueOf({ from: field, key: name }: Source): string {
  const value = `namespaceObject.metadata.?${field}[?${celString(name)}].orValue("")`;
  return field === "labels"
    ? value
    : `[${value}].filter(v, v.size() <= ${LABEL_LENGTH} && v.matches(${celString(LABEL_VALUE_PATTERN)})).join("")`;
}

/** A label of nodes, or a toleration, that a policy has with a value of the namespace, and with another one as well. */
function namedTwice(spec: JsonObject, given: JsonObject): string | undefined {
  const keysOf = (list: readonly Json[]) => list.map((one) => stringAt(one, "key") ?? "");
  const namesIn = (value: Json | undefined) => (isObject(value) ? Object.keys(value) : []);
  const own = new Set([
    ...namesIn(spec["nodeSelector"]),
    ...listAt(spec, ...REQUIRED_TERMS).flatMap((term) => keysOf(listAt(term, "matchExpressions"))),
  ]);
  const further = [...namesIn(given["nodeSelector"]), ...keysOf(listAt(given, "nodeAffinity"))];
  const label = further.find((key, i) => own.has(key) || further.indexOf(key) < i);
  if (label !== undefined) return `label ${label}`;
  const taintOf = (one: Json) => `${stringAt(one, "key") ?? ""}:${stringAt(one, "effect") ?? ""}`;
  const tolerated = listAt(spec, "tolerations").map(taintOf);
  const more = listAt(given, "tolerations").map(taintOf);
  const taint = more.find((one, i) => tolerated.includes(one) || more.indexOf(one) < i);
  return taint === undefined ? undefined : `a toleration of ${taint}`;
}

function nounOf({ from: field }: Source): string {
  return field === "labels" ? "label" : "annotation";
}

/** The spec as kupid would have it written for one namespace. */
function withValues(spec: JsonObject, given: JsonObject, valueFor: (one: Source) => string): JsonObject {
  const value = (one: Json | undefined) => {
    const found = sourceOf(one);
    return found === undefined ? "" : valueFor(found);
  };
  const selector = isObject(given["nodeSelector"]) ? given["nodeSelector"] : {};
  const selected = Object.fromEntries(Object.entries(selector).map(([name, one]) => [name, value(one)]));
  const requirements = listAt(given, "nodeAffinity").map((one) => ({
    key: stringAt(one, "key") ?? "",
    operator: "In",
    values: [value(one)],
  }));
  const tolerations = listAt(given, "tolerations").map((one) => ({
    key: stringAt(one, "key") ?? "",
    operator: "Equal",
    value: value(one),
    ...(stringAt(one, "effect") === undefined ? {} : { effect: stringAt(one, "effect") }),
  }));
  return {
    ...spec,
    ...(Object.keys(selected).length === 0
      ? {}
      : { nodeSelector: { ...(isObject(spec["nodeSelector"]) ? spec["nodeSelector"] : {}), ...selected } }),
    ...(requirements.length === 0 ? {} : { affinity: withRequirements(spec, requirements) }),
    ...(tolerations.length === 0 ? {} : { tolerations: [...listAt(spec, "tolerations"), ...tolerations] }),
  };
}

const REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution";

function withRequirements(spec: JsonObject, requirements: readonly JsonObject[]): JsonObject {
  const affinity = isObject(spec["affinity"]) ? spec["affinity"] : {};
  const nodeAffinity = isObject(affinity["nodeAffinity"]) ? affinity["nodeAffinity"] : {};
  const required = isObject(nodeAffinity[REQUIRED]) ? nodeAffinity[REQUIRED] : {};
  const terms = listAt(required, "nodeSelectorTerms");
  const nodeSelectorTerms = (terms.length === 0 ? [{}] : terms).map((term) => ({
    ...(isObject(term) ? term : {}),
    matchExpressions: [...listAt(term, "matchExpressions"), ...requirements],
  }));
  return { ...affinity, nodeAffinity: { ...nodeAffinity, [REQUIRED]: { ...required, nodeSelectorTerms } } };
}
