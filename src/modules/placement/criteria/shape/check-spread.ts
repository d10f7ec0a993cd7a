import { isObject, type Json, own } from "../../../../core/json.ts";
import { typeName } from "../../../../core/kubernetes/field-error.ts";
import { compileSelector } from "../../../../core/kubernetes/selectors/label-selector.ts";
import type { Path } from "../../../../core/path.ts";
import { checkLabelKeys, checkTopologyKey, unknownFields } from "./check-affinity.ts";

interface Found {
  readonly path: Path;
  readonly message: string;
}

const FIELDS: ReadonlySet<string> = new Set([
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

/** What the API server would refuse in a topology spread constraint. */
export function checkSpread(value: Json, path: Path): Found[] {
  if (!isObject(value))
    return [{ path, message: `a topology spread constraint must be an object, got ${typeName(value)}` }];
  const found = unknownFields(value, path, FIELDS, "a topology spread constraint");
  const say = (field: string, message: string) => found.push({ path: [...path, field], message });
  if (!isPositive(own(value, "maxSkew"))) say("maxSkew", "must be a whole number above 0");
  found.push(...checkTopologyKey(value, path));
  const when = own(value, "whenUnsatisfiable");
  if (when !== "DoNotSchedule" && when !== "ScheduleAnyway")
    say("whenUnsatisfiable", "must be DoNotSchedule or ScheduleAnyway");
  const domains = own(value, "minDomains") ?? undefined;
  if (domains !== undefined && !isPositive(domains)) say("minDomains", "must be a whole number above 0");
  if (domains !== undefined && when === "ScheduleAnyway")
    say("minDomains", "goes with whenUnsatisfiable: DoNotSchedule alone");
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
