import { isObject, type Json, type JsonObject } from "../json.ts";

/** The defaults that the API server writes into a ValidatingAdmissionPolicy or a binding; beside them, empty selectors. */
const DEFAULTS: Readonly<Record<string, Json>> = { matchPolicy: "Equivalent", scope: "*" };

/**
 * The spec of a ValidatingAdmissionPolicy or its binding without the API server's defaults, and without empty fields,
 * which it does not store or reads as absent. Equivalent specs are then equal; one with an additional field, such as
 * `excludeResourceRules`, is not.
 */
export function withoutPolicyDefaults(spec: Json): Json {
  if (Array.isArray(spec)) return spec.map(withoutPolicyDefaults);
  if (!isObject(spec)) return spec;
  const kept: Record<string, Json> = {};
  for (const [key, value] of Object.entries(spec as JsonObject)) {
    if (value === undefined || value === DEFAULTS[key]) continue;
    const plain = withoutPolicyDefaults(value);
    const isEmpty = plain === null || (typeof plain === "object" && Object.keys(plain).length === 0);
    if (!isEmpty) kept[key] = plain;
  }
  return kept;
}
