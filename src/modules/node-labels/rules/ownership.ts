import type { PolicyRef } from "../../../core/evaluate/finding.ts";
import { at, isObject, type JsonObject, stringAt } from "../../../core/json.ts";
import { checkSubdomain } from "../../../core/kubernetes/names.ts";
import { isBeingDeleted } from "../../../core/kubernetes/object.ts";
import type { Prepared } from "../../../core/policy/kind.ts";
import { type Problem, problem } from "../../../core/policy/problem.ts";
import { ACKNOWLEDGE, acknowledged } from "./acknowledged.ts";
import { isKubernetesDomain, isProtected, partsOf } from "./label-keys.ts";
import { type NamePattern, type PatternProblem, readPattern } from "./pattern.ts";
import { describePattern } from "./rule-patterns.ts";

/** An OwnedLabels object made ready: labels that are there only because a rule says so. */
export interface Ownership {
  readonly kind: "ownership";
  readonly ref: PolicyRef;
  readonly id: string;
  readonly domain: string | undefined;
  readonly name: NamePattern | undefined;
  /** Milliseconds since 1970; `undefined` without a creationTimestamp. */
  readonly created: number | undefined;
}

/** A wrong part makes it own nothing at all: half of it would own more than its author meant. */
export function prepareOwnership(object: JsonObject, ref: PolicyRef): Prepared<Ownership> {
  if (isBeingDeleted(object)) return { policy: undefined, problems: [] };
  const spec = isObject(object["spec"]) ? object["spec"] : {};
  const problems: Problem[] = [];
  const domain = textAt(spec, "domain", problems);
  const source = textAt(spec, "namePattern", problems);
  const name = source === undefined ? undefined : readPattern(source);
  if (domain !== undefined) checkDomain(object, domain, name !== undefined && isNarrow(name), problems);
  if (name !== undefined && !("matches" in name))
    problems.push(problem(["spec", "namePattern"], describePattern(source ?? "", name)));
  if (domain === undefined && source === undefined && problems.length === 0)
    problems.push(
      problem(
        ["spec"],
        "owns nothing that can be named: without domain and namePattern it would own every label",
        "write domain, namePattern, or both",
      ),
    );
  if (problems.length > 0 || (name !== undefined && !("matches" in name)))
    return { policy: undefined, problems };
  const created = Date.parse(stringAt(object, "metadata", "creationTimestamp") ?? "");
  const policy: Ownership = {
    kind: "ownership",
    ref,
    id: `${ref.namespace ?? ""}/${ref.name}`,
    domain,
    name,
    created: Number.isNaN(created) ? undefined : created,
  };
  return { policy, problems };
}

function textAt(spec: JsonObject, field: string, problems: Problem[]): string | undefined {
  const value = at(spec, field);
  if (value === undefined || value === null) return undefined;
  if (typeof value === "string") return value;
  problems.push(problem(["spec", field], "must be a text"));
  return undefined;
}

/** Names that nobody has, one for each beginning: a pattern that fits any of them fits whatever comes. */
const NOBODYS = [..."abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"].map(
  (first) => `${first}-usher-0x-nobody`,
);

/** Whether a pattern names some labels, and not nearly all of a domain. One that can't be read owns nothing anyway. */
function isNarrow(name: NamePattern | PatternProblem): boolean {
  return !("matches" in name) || !NOBODYS.some((nobody) => name.matches(nobody));
}

function checkDomain(object: JsonObject, domain: string, narrow: boolean, problems: Problem[]): void {
  const path = ["spec", "domain"];
  const wrong = checkSubdomain(domain);
  if (wrong !== undefined) problems.push(problem(path, wrong));
  else if (!narrow && isKubernetesDomain(domain) && !acknowledged(object).has(domain))
    problems.push(
      problem(
        path,
        `${domain} belongs to Kubernetes: all of it but the protected keys would be removed from nodes where no rule sets it (USHER-L03)`,
        `write a namePattern that fits only what you mean or, if you mean it, annotate the object with ${ACKNOWLEDGE}: ${domain}`,
      ),
    );
}

/**
 * Whether a label is owned. What the kubelet keeps right never is. Without a domain nothing that belongs to Kubernetes is meant, and
 * a key without a slash has no domain that could be named.
 */
export function owns({ domain, name }: Ownership, key: string): boolean {
  if (isProtected(key)) return false;
  const parts = partsOf(key);
  if (domain !== undefined) {
    if (parts.domain !== domain) return false;
  } else if (parts.domain !== undefined && isKubernetesDomain(parts.domain)) return false;
  return name === undefined || name.matches(parts.name);
}

/**
 * Milliseconds until it may remove labels: rules that belong to it may still be on their way after it was created or changed. The first
 * generation is as old as the object; of a later one only `firstSeen` is known.
 */
export function graceLeft(ownership: Ownership, firstSeen: number, graceMs: number, now: number): number {
  const { generation } = ownership.ref;
  const unchanged = generation === undefined || generation <= 1;
  const since = unchanged ? (ownership.created ?? firstSeen) : firstSeen;
  // A clock that is behind the API server's must not prolong the grace period.
  return Math.max(0, Math.min(since, firstSeen) + graceMs - now);
}
