import { isObject, type Json, type JsonObject, own } from "../../../core/json.ts";
import { quoted, typeName } from "../../../core/kubernetes/field-error.ts";
import { checkDnsLabel, checkLabelKey } from "../../../core/kubernetes/names.ts";
import { compileSelector } from "../../../core/kubernetes/selectors/label-selector.ts";
import { compileTerm } from "../../../core/kubernetes/selectors/node-selector.ts";
import type { Path } from "../../../core/path.ts";

/** The lists of each affinity. */
export const REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution";
export const PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution";

interface Found {
  readonly path: Path;
  readonly message: string;
}

const POD_TERM: ReadonlySet<string> = new Set([
  "labelSelector",
  "namespaceSelector",
  "namespaces",
  "topologyKey",
  "matchLabelKeys",
  "mismatchLabelKeys",
]);

/** A preference for nodes: a weight, and one term. */
export function checkPreferredNodeTerm(value: Json, path: Path): Found[] {
  return checkWeighted(value, path, "preference", (inner, place) => {
    const found: Found[] = [];
    compileTerm(inner, place, found);
    return found;
  });
}

/** A preference about other pods: a weight, and one term. */
export function checkPreferredPodTerm(value: Json, path: Path): Found[] {
  return checkWeighted(value, path, "podAffinityTerm", checkPodTerm);
}

function checkWeighted(
  value: Json,
  path: Path,
  field: string,
  check: (inner: Json, path: Path) => readonly Found[],
): Found[] {
  if (!isObject(value)) return [{ path, message: `a preference must be an object, got ${typeName(value)}` }];
  const found = unknownFields(value, path, new Set(["weight", field]), "a preference");
  const weight = own(value, "weight");
  if (typeof weight !== "number" || !Number.isInteger(weight) || weight < 1 || weight > 100)
    found.push({ path: [...path, "weight"], message: "a weight is a whole number from 1 to 100" });
  const inner = own(value, field);
  if (!isObject(inner)) found.push({ path: [...path, field], message: `a preference needs ${field}` });
  else found.push(...check(inner, [...path, field]));
  return found;
}

/** Other pods, and their topology domain. */
export function checkPodTerm(value: Json, path: Path): Found[] {
  if (!isObject(value))
    return [{ path, message: `a pod affinity term must be an object, got ${typeName(value)}` }];
  const found = unknownFields(value, path, POD_TERM, "a pod affinity term");
  const selector = own(value, "labelSelector");
  found.push(...compileSelector(selector, [...path, "labelSelector"]).problems);
  found.push(...compileSelector(own(value, "namespaceSelector"), [...path, "namespaceSelector"]).problems);
  found.push(...checkTopologyKey(value, path));
  found.push(...checkNames(value, "namespaces", path, checkDnsLabel));
  const matching = checkLabelKeys(value, "matchLabelKeys", path);
  found.push(...matching, ...checkLabelKeys(value, "mismatchLabelKeys", path));
  const both = new Set(textsAt(value, "matchLabelKeys"));
  for (const [i, key] of textsAt(value, "mismatchLabelKeys").entries()) {
    if (both.has(key)) {
      const message = `${quoted(key)} is in matchLabelKeys too, and no pod can match and differ in it`;
      found.push({ path: [...path, "mismatchLabelKeys", i], message });
    }
  }
  return found;
}

/** The node label that defines a topology domain. */
function checkTopologyKey(value: JsonObject, path: Path): Found[] {
  const key = own(value, "topologyKey") ?? "";
  const place = [...path, "topologyKey"];
  if (typeof key !== "string") return [{ path: place, message: `must be a string, got ${typeName(key)}` }];
  if (key === "") return [{ path: place, message: "topologyKey is required" }];
  const wrong = checkLabelKey(key);
  return wrong === undefined ? [] : [{ path: place, message: wrong }];
}

/** Keys whose values are taken from the incoming pod: they extend a selector, so there must be one, without them. */
function checkLabelKeys(value: JsonObject, field: string, path: Path): Found[] {
  const found = checkNames(value, field, path, checkLabelKey);
  const keys = textsAt(value, field);
  if (keys.length === 0) return found;
  const selector = own(value, "labelSelector");
  if (!isObject(selector)) {
    found.push({ path: [...path, field], message: `${field} requires labelSelector` });
    return found;
  }
  const named = selectorKeys(selector);
  for (const [i, key] of keys.entries()) {
    if (named.has(key))
      found.push({
        path: [...path, field, i],
        message: `${quoted(key)} is in labelSelector too; leave one out`,
      });
  }
  return found;
}

function selectorKeys(selector: JsonObject): Set<string> {
  const labels = own(selector, "matchLabels");
  const expressions = own(selector, "matchExpressions");
  const keys = new Set(isObject(labels) ? Object.keys(labels) : []);
  for (const one of Array.isArray(expressions) ? expressions : []) {
    const key = own(one, "key");
    if (typeof key === "string") keys.add(key);
  }
  return keys;
}

function checkNames(
  value: JsonObject,
  field: string,
  path: Path,
  check: (text: string) => string | undefined,
): Found[] {
  const list = own(value, field);
  if (list === undefined || list === null) return [];
  if (!Array.isArray(list))
    return [{ path: [...path, field], message: `must be a list, got ${typeName(list)}` }];
  return list.flatMap((item: Json, i) => {
    const wrong = typeof item === "string" ? check(item) : `must be a string, got ${typeName(item)}`;
    return wrong === undefined ? [] : [{ path: [...path, field, i], message: wrong }];
  });
}

function textsAt(value: JsonObject, field: string): string[] {
  const list = own(value, field);
  return Array.isArray(list) ? list.filter((item): item is string => typeof item === "string") : [];
}

function unknownFields(value: JsonObject, path: Path, known: ReadonlySet<string>, what: string): Found[] {
  return Object.keys(value)
    .filter((field) => !known.has(field) && value[field] !== undefined)
    .map((field) => ({ path: [...path, field], message: `${what} has no field ${quoted(field)}` }));
}

const SPREAD_FIELDS: ReadonlySet<string> = new Set([
  "maxSkew",
  "topologyKey",
  "whenUnsatisfiable",
  "labelSelector",
  "minDomains",
  "nodeAffinityPolicy",
  "nodeTaintsPolicy",
  "matchLabelKeys",
]);
const INCLUSION: readonly (Json | undefined)[] = [undefined, null, "Honor", "Ignore"];

/** The API server's errors for a topology spread constraint. */
export function checkSpread(value: Json, path: Path): Found[] {
  if (!isObject(value))
    return [{ path, message: `a topology spread constraint must be an object, got ${typeName(value)}` }];
  const found = unknownFields(value, path, SPREAD_FIELDS, "a topology spread constraint");
  const say = (field: string, message: string) => found.push({ path: [...path, field], message });
  if (!isPositive(own(value, "maxSkew"))) say("maxSkew", "must be a whole number above 0");
  found.push(...checkTopologyKey(value, path));
  const when = own(value, "whenUnsatisfiable");
  if (when !== "DoNotSchedule" && when !== "ScheduleAnyway")
    say("whenUnsatisfiable", "must be DoNotSchedule or ScheduleAnyway");
  const domains = own(value, "minDomains") ?? undefined;
  if (domains !== undefined && !isPositive(domains)) say("minDomains", "must be a whole number above 0");
  if (domains !== undefined && when === "ScheduleAnyway")
    say("minDomains", "requires whenUnsatisfiable: DoNotSchedule");
  for (const field of ["nodeAffinityPolicy", "nodeTaintsPolicy"]) {
    if (!INCLUSION.includes(own(value, field))) say(field, "must be Honor or Ignore");
  }
  found.push(...compileSelector(own(value, "labelSelector"), [...path, "labelSelector"]).problems);
  found.push(...checkLabelKeys(value, "matchLabelKeys", path));
  return found;
}

function isPositive(value: Json | undefined): boolean {
  return typeof value === "number" && Number.isInteger(value) && value > 0;
}
