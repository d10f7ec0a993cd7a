import { at, isObject, type Json, type JsonObject, listAt, stringAt } from "../../../core/json.ts";
import { checkAnnotationKey, checkLabelKey, checkLabelValue } from "../../../core/kubernetes/names.ts";
import { isKubeletLabel } from "../../../core/kubernetes/node-label-keys.ts";
import { isBeingDeleted } from "../../../core/kubernetes/object.ts";
import { type CompiledSelector, compileSelector } from "../../../core/kubernetes/selectors/label-selector.ts";
import { TAINT_EFFECTS } from "../../../core/kubernetes/taints.ts";
import { compareText } from "../../../core/order.ts";
import type { Path } from "../../../core/path.ts";
import type { Prepared } from "../../../core/policy/kind.ts";
import type { PolicyRef } from "../../../core/policy/policy-ref.ts";
import { type Problem, problem } from "../../../core/policy/problem.ts";
import { ACKNOWLEDGE, acknowledged } from "./ownership.ts";
import type { NamePattern } from "./pattern.ts";
import { patternsOf } from "./rule-patterns.ts";

/** The prefix of usher's own annotations. */
const OWN_PREFIX = "usher.dev/";

export interface RuledTaint {
  readonly key: string;
  readonly value: string;
  readonly effect: string;
}

/** Keys with an invalid value: on nodes that the rule matches, usher's earlier values for them stay. */
export interface InvalidKeys {
  readonly keys: ReadonlySet<string>;
  /** Which keys is unknown. */
  readonly every: boolean;
}

/** A prepared Labels object. */
export interface NodeRule {
  readonly kind: "rule";
  readonly ref: PolicyRef;
  /** `namespace/name`, as in the record on a node. */
  readonly id: string;
  readonly priority: number;
  readonly patterns: readonly NamePattern[];
  /** `undefined`: any labels match. */
  readonly selector: CompiledSelector | undefined;
  readonly labels: ReadonlyMap<string, string>;
  readonly annotations: ReadonlyMap<string, string>;
  readonly taints: readonly RuledTaint[];
  /** Whether an API server stores the rule. A rule of a file has no ledger of its taints. */
  readonly isStored: boolean;
  readonly startupTaint: boolean;
  /** Label keys that it names, also with an invalid value: on nodes that it matches no OwnedLabels removes them. */
  readonly covers: ReadonlySet<string>;
  /** Which nodes it matches is unknown, so it covers its keys on all of them. */
  readonly coversEveryNode: boolean;
  /** Which keys it names is unknown, so it covers all of them. */
  readonly coversEveryKey: boolean;
  /** Taints by `key:effect`. */
  readonly invalidKeys: Readonly<Record<"annotations" | "taints", InvalidKeys>>;
}

/** Never throws. Valid parts apply; invalid ones protect the values that they might mean from removal. */
export function prepareRule(object: JsonObject, ref: PolicyRef): Prepared<NodeRule> {
  // A rule that is being deleted neither sets nor covers anything.
  if (isBeingDeleted(object)) return { policy: undefined, problems: [] };
  const spec = isObject(object["spec"]) ? object["spec"] : {};
  const problems: Problem[] = [];
  const patterns = patternsOf(spec, problems);
  const selector = selectorOf(spec, problems);
  const coversEveryNode = problems.length > 0;
  const acks = acknowledged(object);
  const covers = new Set<string>();
  const labels = labelsIn(spec, acks, covers, problems);
  const annotations = annotationsIn(spec, problems);
  const taints = taintsIn(spec, problems);
  const priority = at(spec, "priority");
  const policy: NodeRule = {
    kind: "rule",
    ref,
    id: `${ref.namespace ?? ""}/${ref.name}`,
    priority: typeof priority === "number" && Number.isInteger(priority) ? priority : 0,
    patterns,
    selector,
    labels,
    annotations: annotations.valid,
    taints: taints.valid,
    isStored: stringAt(object, "metadata", "uid") !== undefined,
    startupTaint: at(spec, "startupTaint") === true,
    covers,
    coversEveryNode,
    coversEveryKey: isNoMap(at(spec, "labels")),
    invalidKeys: { annotations, taints },
  };
  return { policy, problems };
}

const NOTHING: CompiledSelector = { kind: "nothing" };

function selectorOf(spec: JsonObject, problems: Problem[]): CompiledSelector | undefined {
  const written = at(spec, "nodeSelector");
  if (written === undefined || written === null) return undefined;
  const compiled = compileSelector(written, ["spec", "nodeSelector"]);
  for (const { path, message } of compiled.problems) problems.push(problem(path, message));
  return compiled.problems.length > 0 ? NOTHING : compiled.selector;
}

function labelsIn(
  spec: JsonObject,
  acks: ReadonlySet<string>,
  covers: Set<string>,
  problems: Problem[],
): Map<string, string> {
  const labels = new Map<string, string>();
  for (const [key, value, path] of pairsAt(spec, "labels", problems)) {
    covers.add(key);
    const wrong = checkLabelKey(key) ?? (value === undefined ? NOT_A_STRING : checkLabelValue(value));
    if (wrong !== undefined) problems.push(problem(path, wrong));
    else if (isKubeletLabel(key) && !acks.has(key))
      problems.push(
        problem(
          path,
          "is managed by the kubelet, and other software relies on it (USHER-L03)",
          `to set it anyway, annotate the rule with ${ACKNOWLEDGE}: ${key}`,
        ),
      );
    else labels.set(key, value ?? "");
  }
  return labels;
}

function isNoMap(value: Json | undefined): boolean {
  return value !== undefined && value !== null && !isObject(value);
}

function annotationsIn(
  spec: JsonObject,
  problems: Problem[],
): InvalidKeys & { readonly valid: Map<string, string> } {
  const valid = new Map<string, string>();
  const keys = new Set<string>();
  for (const [key, value, path] of pairsAt(spec, "annotations", problems)) {
    const wrong = checkAnnotationKey(key) ?? (value === undefined ? NOT_A_STRING : undefined);
    if (wrong !== undefined) keys.add(key);
    if (wrong !== undefined) problems.push(problem(path, wrong));
    else if (key.toLowerCase().startsWith(OWN_PREFIX))
      problems.push(problem(path, "has a prefix that is reserved for usher; choose another one"));
    else valid.set(key, value ?? "");
  }
  return { valid, keys, every: isNoMap(at(spec, "annotations")) };
}

const NOT_A_STRING = "must be a string";

/** The entries of a map with their paths; a value that is not a string is `undefined`. */
function pairsAt(
  spec: JsonObject,
  field: string,
  problems: Problem[],
): [key: string, value: string | undefined, path: Path][] {
  const map = at(spec, field);
  if (map === undefined || map === null) return [];
  if (!isObject(map)) {
    problems.push(problem(["spec", field], "must be an object"));
    return [];
  }
  return Object.keys(map).map((key) => {
    const value = map[key];
    return [key, typeof value === "string" ? value : undefined, ["spec", field, key]];
  });
}

function taintsIn(spec: JsonObject, problems: Problem[]): InvalidKeys & { readonly valid: RuledTaint[] } {
  const taints = new Map<string, RuledTaint>();
  const keys = new Set<string>();
  const written = at(spec, "taints");
  let every = written !== undefined && written !== null && !Array.isArray(written);
  if (every) problems.push(problem(["spec", "taints"], "must be an array of taints"));
  for (const [i, item] of listAt(spec, "taints").entries()) {
    const path = ["spec", "taints", i];
    const key = stringAt(item, "key") ?? "";
    const value = stringAt(item, "value") ?? "";
    const effect = stringAt(item, "effect") ?? "";
    const wrongKey = checkLabelKey(key);
    const wrongValue = checkLabelValue(value);
    every ||= wrongKey !== undefined;
    // An invalid effect may mean any of them.
    for (const one of TAINT_EFFECTS.has(effect) ? [effect] : TAINT_EFFECTS)
      if (wrongValue !== undefined || one !== effect) keys.add(`${key}:${one}`);
    if (wrongKey !== undefined) problems.push(problem([...path, "key"], wrongKey));
    else if (wrongValue !== undefined) problems.push(problem([...path, "value"], wrongValue));
    else if (!TAINT_EFFECTS.has(effect))
      problems.push(problem([...path, "effect"], `must be one of ${[...TAINT_EFFECTS].join(", ")}`));
    else if (taints.has(`${key}:${effect}`)) problems.push(problem(path, `duplicate taint ${key}:${effect}`));
    else taints.set(`${key}:${effect}`, { key, value, effect });
  }
  return { valid: [...taints.values()], keys, every };
}

/** Precedence: the higher priority first, then by name, then by namespace. */
export function compareRules(a: NodeRule, b: NodeRule): number {
  if (a.priority !== b.priority) return b.priority - a.priority;
  return compareText(a.ref.name, b.ref.name) || compareText(a.ref.namespace ?? "", b.ref.namespace ?? "");
}
