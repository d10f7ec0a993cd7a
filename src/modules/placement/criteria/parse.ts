import { at, isObject, type Json, type JsonObject } from "../../../core/json.ts";
import { typeName } from "../../../core/kubernetes/field-error.ts";
import {
  checkLabelKey,
  checkLabelValue,
  checkQualifiedName,
  checkSubdomain,
} from "../../../core/kubernetes/names.ts";
import { compileNodeSelector } from "../../../core/kubernetes/selectors/node-selector.ts";
import { checkToleration } from "../../../core/kubernetes/tolerations.ts";
import type { Path } from "../../../core/path.ts";
import { type Problem, problem } from "../../../core/policy/problem.ts";
import { contradictionsIn } from "../policy/contradictions.ts";
import type { Criteria } from "./criteria.ts";
import { checkPodTerm, checkPreferredNodeTerm, checkPreferredPodTerm } from "./shape/check-affinity.ts";
import { checkSpread } from "./shape/check-spread.ts";

/** One for all: a policy names a few criteria, and an empty list for each of the others would be most of its size. */
const NONE: readonly JsonObject[] = [];
const NO_PAIRS: Criteria["nodeSelector"] = [];

type Found = { readonly path: Path; readonly message: string };
type Check = (value: Json, path: Path) => readonly Found[];

/**
 * The criteria of a policy's spec, with all that is wrong in them. Never throws: of what can't be read nothing is taken, and the
 * problem makes the policy a broken one.
 */
export function criteriaOf(spec: JsonObject, problems: Problem[]): Criteria {
  const read = new Reading(spec, problems);
  const required = ["affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"];
  for (const parent of [
    ["affinity"],
    ["affinity", "nodeAffinity"],
    ["affinity", "podAffinity"],
    ["affinity", "podAntiAffinity"],
  ])
    read.object(parent);
  const criteria: Criteria = {
    nodeSelector: nodeSelectorOf(spec, problems),
    nodeName: read.name("nodeName", checkSubdomain),
    schedulerName: read.name("schedulerName", checkSubdomain),
    priorityClassName: read.name("priorityClassName", checkSubdomain),
    runtimeClassName: read.name("runtimeClassName", checkSubdomain),
    requiredNodeTerms: read.terms(required),
    preferredNodeTerms: read.list(preferred("nodeAffinity"), checkPreferredNodeTerm),
    requiredPodTerms: read.list(demanded("podAffinity"), checkPodTerm),
    preferredPodTerms: read.list(preferred("podAffinity"), checkPreferredPodTerm),
    requiredAntiTerms: read.list(demanded("podAntiAffinity"), checkPodTerm),
    preferredAntiTerms: read.list(preferred("podAntiAffinity"), checkPreferredPodTerm),
    tolerations: read.list(["tolerations"], checkToleration),
    topologySpreadConstraints: read.list(["topologySpreadConstraints"], checkSpread),
    schedulingGates: read.list(["schedulingGates"], checkGate),
  };
  problems.push(...contradictionsIn(criteria));
  return criteria;
}

const demanded = (part: string): Path => ["affinity", part, "requiredDuringSchedulingIgnoredDuringExecution"];
const preferred = (part: string): Path => [
  "affinity",
  part,
  "preferredDuringSchedulingIgnoredDuringExecution",
];

/** The parts of one spec, read one by one. */
class Reading {
  readonly #spec: JsonObject;
  readonly #problems: Problem[];

  constructor(spec: JsonObject, problems: Problem[]) {
    this.#spec = spec;
    this.#problems = problems;
  }

  /** Says so where a part that holds others is no object. */
  object(path: Path): void {
    const value = at(this.#spec, ...path);
    if (value !== undefined && value !== null && !isObject(value))
      this.#say(["spec", ...path], `must be an object, this is ${typeName(value)}`);
  }

  /** An empty name is an absent one, as it is in a pod. */
  name(field: string, check: (text: string) => string | undefined): string | undefined {
    const value = at(this.#spec, field);
    if (value === undefined || value === null || value === "") return undefined;
    const wrong = typeof value === "string" ? check(value) : `must be a text, this is ${typeName(value)}`;
    if (wrong !== undefined) this.#say(["spec", field], wrong);
    return wrong === undefined && typeof value === "string" ? value : undefined;
  }

  list(path: Path, check: Check): readonly JsonObject[] {
    const value = at(this.#spec, ...path);
    if (value === undefined || value === null) return NONE;
    const place = ["spec", ...path];
    if (!Array.isArray(value)) {
      this.#say(place, `must be a list, this is ${typeName(value)}`);
      return NONE;
    }
    for (const [i, item] of value.entries()) {
      for (const found of check(item, [...place, i])) this.#say(found.path, found.message);
    }
    return plainList(value);
  }

  terms(path: Path): readonly JsonObject[] {
    const value = at(this.#spec, ...path);
    for (const found of compileNodeSelector(value, ["spec", ...path]).problems)
      this.#say(found.path, found.message);
    const list = at(value, "nodeSelectorTerms");
    return Array.isArray(list) ? plainList(list) : NONE;
  }

  #say(path: Path, message: string): void {
    this.#problems.push(problem(path, message));
  }
}

function nodeSelectorOf(spec: JsonObject, problems: Problem[]): Criteria["nodeSelector"] {
  const labels = at(spec, "nodeSelector");
  if (labels === undefined || labels === null) return NO_PAIRS;
  if (!isObject(labels)) {
    problems.push(problem(["spec", "nodeSelector"], "must be an object of label keys and values"));
    return NO_PAIRS;
  }
  const pairs: (readonly [string, string])[] = [];
  // Sorted, so that the patch does not depend on how the policy was written.
  for (const key of Object.keys(labels).sort()) {
    const value = labels[key];
    const wrong =
      checkLabelKey(key) ??
      (typeof value === "string" ? checkLabelValue(value) : "a label's value must be a text");
    if (wrong !== undefined) problems.push(problem(["spec", "nodeSelector", key], wrong));
    else if (typeof value === "string") pairs.push([key, value]);
  }
  return pairs.length === 0 ? NO_PAIRS : pairs;
}

function checkGate(value: Json, path: Path): Found[] {
  if (!isObject(value))
    return [{ path, message: `a scheduling gate must be an object, this is ${typeName(value)}` }];
  const found: Found[] = [];
  for (const field of Object.keys(value)) {
    if (field !== "name")
      found.push({ path: [...path, field], message: "a scheduling gate has nothing but a name" });
  }
  const name = at(value, "name");
  const wrong = typeof name === "string" ? checkQualifiedName(name) : "a scheduling gate needs a name";
  if (wrong !== undefined) found.push({ path: [...path, "name"], message: wrong });
  return found;
}

/**
 * The objects of a list as an API server would hold them: without nulls, members sorted. So a policy from a file and the same
 * one from a cluster come to the same bytes. From a cluster it is the list itself, which the policy holds anyway.
 */
function plainList(list: readonly Json[]): readonly JsonObject[] {
  const objects = list.map(asStored).filter(isObject);
  if (objects.length === 0) return NONE;
  const same = objects.length === list.length && objects.every((object, i) => object === list[i]);
  return same ? (list as readonly JsonObject[]) : objects;
}

function asStored(value: Json): Json {
  if (Array.isArray(value)) {
    const items = value.map(asStored);
    return items.every((item, i) => item === value[i]) ? value : items;
  }
  if (!isObject(value)) return value;
  const names = Object.keys(value);
  const members = names.toSorted().flatMap((name): [string, Json][] => {
    const member = value[name];
    return member === undefined || member === null ? [] : [[name, asStored(member)]];
  });
  const same =
    members.length === names.length &&
    members.every(([name, member], i) => name === names[i] && member === value[name]);
  return same ? value : Object.fromEntries(members);
}
