import { at, isObject, type JsonObject, stringAt } from "../../../core/json.ts";
import { checkSubdomain } from "../../../core/kubernetes/names.ts";
import { isKubeletLabel, isKubernetesDomain, partsOf } from "../../../core/kubernetes/node-label-keys.ts";
import { isBeingDeleted } from "../../../core/kubernetes/object.ts";
import type { Prepared } from "../../../core/policy/kind.ts";
import type { PolicyRef } from "../../../core/policy/policy-ref.ts";
import { type Problem, problem } from "../../../core/policy/problem.ts";
import { type NamePattern, type PatternProblem, readPattern } from "./pattern.ts";
import { describePattern } from "./rule-patterns.ts";

/** A prepared OwnedLabels object: labels that are removed if no rule sets them. */
export interface Ownership {
  readonly kind: "ownership";
  readonly ref: PolicyRef;
  readonly id: string;
  readonly domain: string | undefined;
  readonly name: NamePattern | undefined;
  /** Milliseconds since 1970; `undefined` without a creationTimestamp. */
  readonly created: number | undefined;
}

/** An invalid field makes it own nothing at all: the rest alone would own more than its author intended. */
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
        "domain, namePattern, or both are required: without them every label would be owned",
        "set domain, namePattern, or both",
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
  problems.push(problem(["spec", field], "must be a string"));
  return undefined;
}

/** Unlikely label names, one for each first character: a pattern that matches one of them matches nearly every name. */
const UNLIKELY = [..."abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"].map(
  (first) => `${first}-usher-0x-unlikely`,
);

/** Whether a pattern matches some names, and not nearly every one. An invalid pattern owns nothing anyway. */
function isNarrow(name: NamePattern | PatternProblem): boolean {
  return !("matches" in name) || !UNLIKELY.some((one) => name.matches(one));
}

function checkDomain(object: JsonObject, domain: string, narrow: boolean, problems: Problem[]): void {
  const path = ["spec", "domain"];
  const wrong = checkSubdomain(domain);
  if (wrong !== undefined) problems.push(problem(path, wrong));
  else if (!narrow && isKubernetesDomain(domain) && !acknowledged(object).has(domain))
    problems.push(
      problem(
        path,
        `${domain} belongs to Kubernetes: except for protected keys, labels of this domain that no rule sets would be removed from nodes (USHER-L03)`,
        `set a namePattern that matches only your labels, or confirm by annotating the object with ${ACKNOWLEDGE}: ${domain}`,
      ),
    );
}

/**
 * Whether a label is owned. Labels that the kubelet manages never are. Without a domain, labels of Kubernetes' domains are not; a key
 * without a slash is in no domain.
 */
export function owns({ domain, name }: Ownership, key: string): boolean {
  if (isKubeletLabel(key)) return false;
  const parts = partsOf(key);
  if (domain !== undefined) {
    if (parts.domain !== domain) return false;
  } else if (parts.domain !== undefined && isKubernetesDomain(parts.domain)) return false;
  return name === undefined || name.matches(parts.name);
}

/**
 * Milliseconds until it may remove labels: its rules may not be applied yet after it was created or changed. `seenMs`:
 * since its current spec was first seen, by the monotonic clock. The first generation is as old as the object, if the
 * wall clock says so; a wall clock that is behind, or was set back, must not prolong the grace period.
 */
export function graceLeft(ownership: Ownership, seenMs: number, graceMs: number, now: number): number {
  const { generation } = ownership.ref;
  const unchanged = generation === undefined || generation <= 1;
  const age = unchanged && ownership.created !== undefined ? now - ownership.created : 0;
  return Math.max(0, graceMs - Math.max(age, seenMs));
}

/** The annotation by which the author of an object confirms an otherwise refused value. */
export const ACKNOWLEDGE = "usher.dev/acknowledge";

/** The keys and domains that an object acknowledges, separated by commas or spaces. */
export function acknowledged(object: JsonObject): ReadonlySet<string> {
  const text = stringAt(object, "metadata", "annotations", ACKNOWLEDGE) ?? "";
  return new Set(text.split(/[,\s]+/).filter((part) => part !== ""));
}
