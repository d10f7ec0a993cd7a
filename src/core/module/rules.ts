import { OPERATIONS } from "../decision/request.ts";
import type { Rule } from "./hook.ts";

/** A resource pattern in its two halves, split as the API server splits it: `pods/status`, `pods`, `*` and `/` forms. */
export function resourceParts(pattern: string): { name: string; sub: string } {
  const slash = pattern.indexOf("/");
  return slash < 0
    ? { name: pattern, sub: "" }
    : { name: pattern.slice(0, slash), sub: pattern.slice(slash + 1) };
}

/**
 * Equivalent rules in the form that the API server accepts: it refuses a list with a wildcard beside an included name,
 * and empty lists. Equal requests give equal text, so that another order of policies causes no write.
 */
export function tidyRules(rules: readonly Rule[]): Rule[] {
  const byText = new Map<string, Rule>();
  for (const rule of rules) {
    // In the order of their names, so that equal rules have one text.
    const tidy: Rule = {
      groups: wildcardAlone(rule.groups),
      operations: OPERATIONS.filter((operation) => rule.operations.includes(operation)),
      resources: unincluded(rule.resources),
      ...(rule.scope === undefined ? {} : { scope: rule.scope }),
      versions: wildcardAlone(rule.versions),
    };
    if (!matchesNothing(tidy)) byText.set(JSON.stringify(tidy), tidy);
  }
  return [...byText.keys()].sort().flatMap((text) => byText.get(text) ?? []);
}

function matchesNothing({ groups, versions, resources, operations }: Rule): boolean {
  return [groups, versions, resources, operations].some((list) => list.length === 0);
}

function wildcardAlone(list: readonly string[]): string[] {
  return list.includes("*") ? ["*"] : [...new Set(list)].sort();
}

function unincluded(patterns: readonly string[]): string[] {
  // `pods/` means `pods`; otherwise each would include the other.
  const plain = patterns.map((pattern) => (pattern.endsWith("/") ? pattern.slice(0, -1) : pattern));
  const all = [...new Set(plain)].filter((pattern) => pattern !== "").sort();
  return all.filter((pattern) => !all.some((other) => other !== pattern && includes(other, pattern)));
}

function includes(wide: string, narrow: string): boolean {
  const outer = resourceParts(wide);
  const inner = resourceParts(narrow);
  return (outer.name === "*" || outer.name === inner.name) && (outer.sub === "*" || outer.sub === inner.sub);
}
