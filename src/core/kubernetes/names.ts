import { quoted } from "./field-error.ts";

/** RFC 1123 and RFC 1035 give a label 63 octets; Kubernetes uses the same for label names and label values. */
const LABEL_LENGTH = 63;
/** RFC 1035 leaves 253 visible characters for a whole name; the prefix of a label key has the same limit. */
const SUBDOMAIN_LENGTH = 253;

const DNS_LABEL = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?$/;
const DNS_SUBDOMAIN = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*$/;
const NAME_PART = /^[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?$/;

const NAME_PART_RULE = 'letters, digits, "-", "_" and ".", beginning and ending with a letter or digit';

/**
 * Each check returns `undefined` for a valid string, else a message with the problem and the rule. Lengths are counted
 * in UTF-16 units, which for these alphabets is bytes: a string with any other character is invalid anyway.
 */
function check(text: string, what: string, limit: number, pattern: RegExp, rule: string): string | undefined {
  if (text === "") return `${what} must not be empty`;
  // The length first: it bounds the cost of the pattern.
  if (text.length > limit) return `${quoted(text)} is too long for ${what}: at most ${limit} characters`;
  if (!pattern.test(text)) return `${quoted(text)} is not ${what}: use ${rule}`;
  return undefined;
}

/** The name of a namespace, a container, a volume: one label of a host name. */
export function checkDnsLabel(text: string): string | undefined {
  const rule = 'lower-case letters, digits and "-", beginning and ending with a letter or digit';
  return check(text, "a DNS label", LABEL_LENGTH, DNS_LABEL, rule);
}

/** The name of most objects: labels joined with dots. A single label inside may be longer than 63, as in Kubernetes. */
export function checkSubdomain(text: string): string | undefined {
  const rule =
    'lower-case letters, digits, "-" and ".", each part beginning and ending with a letter or digit';
  return check(text, "a DNS subdomain", SUBDOMAIN_LENGTH, DNS_SUBDOMAIN, rule);
}

/** `name` or `prefix/name`, the prefix a DNS subdomain. */
export function checkQualifiedName(text: string): string | undefined {
  return checkQualified(text, "a qualified name");
}

/** Label keys are qualified names. */
export function checkLabelKey(text: string): string | undefined {
  return checkQualified(text, "a label key");
}

/** Label values may be empty. */
export function checkLabelValue(text: string): string | undefined {
  if (text === "") return undefined;
  return check(text, "a label value", LABEL_LENGTH, NAME_PART, NAME_PART_RULE);
}

/**
 * Annotation keys are qualified names whose prefix may have capitals: Kubernetes lower-cases the key first, letter by
 * letter, while JavaScript turns a dotted capital I into two characters.
 */
export function checkAnnotationKey(text: string): string | undefined {
  return checkQualified(text.replaceAll("\u0130", "i").toLowerCase(), "an annotation key");
}

function checkQualified(text: string, what: string): string | undefined {
  if (text === "") return `${what} must not be empty`;
  const slash = text.indexOf("/");
  const name = text.slice(slash + 1);
  if (name.includes("/"))
    return `${quoted(text)} is not ${what}: at most one "/" is allowed, after the prefix`;
  if (slash !== -1) {
    const problem = check(
      text.slice(0, slash),
      "a DNS subdomain",
      SUBDOMAIN_LENGTH,
      DNS_SUBDOMAIN,
      PREFIX_RULE,
    );
    if (problem !== undefined) return `the prefix of ${what} (before "/") is wrong: ${problem}`;
  }
  const problem = check(name, "a name", LABEL_LENGTH, NAME_PART, NAME_PART_RULE);
  if (problem === undefined) return undefined;
  return slash === -1
    ? problem.replace("a name", what)
    : `the name of ${what} (after "/") is wrong: ${problem}`;
}

const PREFIX_RULE =
  'lower-case letters, digits, "-" and ".", each part beginning and ending with a letter or digit';
