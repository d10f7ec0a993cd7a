import { KEY_LENGTH, LABEL_KEY_PATTERN } from "../../../core/kubernetes/schemas/bounds.ts";
import type { CelRule } from "../../../core/policy/kind.ts";

/** Keys of a map have no schema: only a rule can check them. */
export function labelKeys(field: string, inner?: string): CelRule {
  const map = inner === undefined ? `self.${field}` : `self.${field}.${inner}`;
  const absent = inner === undefined ? `!has(${map})` : `!has(self.${field}) || !has(${map})`;
  return {
    rule: `${absent} || ${map}.all(key, key.size() <= ${KEY_LENGTH} && key.matches('${LABEL_KEY_PATTERN}'))`,
    message: `${inner === undefined ? field : `${field}.${inner}`} has a key that is not a label key`,
  };
}
