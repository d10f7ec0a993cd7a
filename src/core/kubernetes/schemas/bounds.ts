import { z } from "zod";

/**
 * Bounds that Kubernetes itself leaves open and a CRD must have: the API server estimates the cost of a CEL rule from
 * them, and rejects a CRD with a rule above 10,000,000 units. A rule of a requirement is evaluated up to 256 × 256
 * times, at up to 150 units each. Rules read only the first value, so the number of values is bounded only by the work
 * budget for one object: more would not be written.
 */
export const MAX_TERMS = 256;
export const MAX_REQUIREMENTS = 256;
export const MAX_VALUES = 4_096;
/** Each required node term of a policy is compared with each of a pod, within the work budget for one object. */
export const MAX_REQUIRED_TERMS = 128;
/** Keys of a map, each matched with a pattern: some 1,000 units. */
export const MAX_LABELS = 1_024;
/** Plain lists of names (namespaces, label keys), which no rule reads. */
export const MAX_NAMES = 1_024;
/** As many elements as a list of a pod may have with those of policies. */
export const MAX_TOLERATIONS = 512;

/** RFC 1123: one label of a host name; Kubernetes uses the same for label values and namespaces. */
export const LABEL_LENGTH = 63;
/** RFC 1035: a whole name. Node names and most object names are such. */
export const NAME_LENGTH = 253;
/** A label key is a name as prefix, a slash, and a label. */
export const KEY_LENGTH = NAME_LENGTH + 1 + LABEL_LENGTH;

const NAME = "[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?";
const SHORT_NAME = "[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?";
const DOMAIN = "[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:[.][a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*";
/**
 * Checks that the API server can do by itself while usher is down. Only the CRD gets these: offline and in the webhook
 * the checks of this folder give better messages than a pattern.
 */
export const LABEL_VALUE_PATTERN = `^(?:${NAME})?$`;
export const LABEL_KEY_PATTERN = `^(?:${DOMAIN}/)?${SHORT_NAME}$`;
export const SUBDOMAIN_PATTERN = `^${DOMAIN}$`;
export const DNS_LABEL_PATTERN = "^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?$";

/** A pattern for a string that may be empty, which means absent. */
export function orEmpty(pattern: string): string {
  return `^$|${pattern}`;
}

/** CEL rules that the API server checks at one path of an object; `fieldPath` is the path of the mistake. */
export function celRules(
  ...rules: readonly { readonly rule: string; readonly message: string; readonly fieldPath?: string }[]
) {
  return { "x-kubernetes-validations": rules.map((rule) => ({ ...rule })) };
}

/** For a requirement: whether its operator and its values match. */
export const SET_VALUES = [
  {
    rule: "!(self.operator in ['In', 'NotIn']) || (has(self.values) && self.values.size() > 0)",
    message: "In and NotIn need at least one value",
    fieldPath: ".values",
  },
  {
    rule: "!(self.operator in ['Exists', 'DoesNotExist']) || !has(self.values) || self.values.size() == 0",
    message: "Exists and DoesNotExist take no values",
    fieldPath: ".values",
  },
] as const;

/**
 * A list that server-side apply replaces as a whole: its items are meaningful only together, so two appliers must not
 * mix theirs. Absent and null are equivalent here and below, as in the API server.
 */
export function atomicList<Item extends z.ZodType>(item: Item, most: number, description: string) {
  return z.array(item).max(most).nullish().meta({ description, "x-kubernetes-list-type": "atomic" });
}

/** Labels by key. The API server counts the entries itself; zod has no such bound for records. */
export function labels(description: string) {
  return z
    .record(z.string(), z.string().max(LABEL_LENGTH).meta({ pattern: LABEL_VALUE_PATTERN }))
    .refine((map) => Object.keys(map).length <= MAX_LABELS, {
      error: `has too many entries: at most ${MAX_LABELS} labels are allowed`,
    })
    .meta({ description, maxProperties: MAX_LABELS });
}
