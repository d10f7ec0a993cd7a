import { allow, type Decision, deny, type NeedMore } from "../../../core/decision/decision.ts";
import type { Finding } from "../../../core/decision/finding.ts";
import { failureOf, type Need } from "../../../core/decision/need.ts";
import { isObject, type JsonObject, stringAt } from "../../../core/json.ts";
import type { Context } from "../../../core/module/module.ts";
import type { Group } from "../groups/group.ts";
import { groupsOfNode } from "../groups/group-nodes.ts";
import { READ_FAILURES_TOTAL } from "../metrics.ts";
import { type EvaluatedClaim, isViolation, verdictOf } from "./evaluate-claim.ts";

/** A fetched node: `unknown` if it does not exist. */
export type ReadNode = { readonly node: JsonObject | "unknown" } | { readonly failed: string } | NeedMore;

/** Reads a node: live, or only if the cache does not have it. */
export function readNode(
  name: string,
  { view, facts }: Pick<Context, "view" | "facts">,
  how: "live" | "cached",
): ReadNode {
  const cached = how === "cached" ? view.get("nodes", "", name) : undefined;
  if (cached !== undefined) return { node: cached };
  const need: Need = { get: { resource: "nodes", name }, live: true };
  const fact = facts.of(need);
  if (fact === undefined) return { need: [need] };
  if ("absent" in fact && fact.absent === "NotFound") return { node: "unknown" };
  const failed = failureOf(fact);
  if (failed !== undefined) return { failed };
  return "found" in fact && isObject(fact.found)
    ? { node: fact.found }
    : { failed: `node ${name} could not be read` };
}

/** A fetched pod; without either if it does not exist. */
export interface ReadPod {
  readonly pod?: JsonObject;
  readonly failed?: string;
}

export function readPod(
  namespace: string,
  name: string,
  { facts }: Pick<Context, "facts">,
): ReadPod | NeedMore {
  const need: Need = { get: { resource: "pods", namespace, name }, live: true };
  const fact = facts.of(need);
  if (fact === undefined) return { need: [need] };
  if ("found" in fact && isObject(fact.found)) return { pod: fact.found };
  const failed = failureOf(fact);
  return failed === undefined ? {} : { failed };
}

/** The groups of a node, and why if not by its labels. */
export function membership(
  node: JsonObject | "unknown",
  groups: readonly Group[],
  now: number,
): { readonly groups: readonly Group[]; readonly node?: "unknown" | "new" } {
  if (node === "unknown") return { groups, node };
  const members = groupsOfNode(groups, node);
  if (members.length > 0) return { groups: members };
  const created = Date.parse(stringAt(node, "metadata", "creationTimestamp") ?? "");
  const fresh = groups.filter(
    ({ newNodeGraceSeconds }) => newNodeGraceSeconds > 0 && now - created < newNodeGraceSeconds * 1_000,
  );
  return fresh.length > 0 ? { groups: fresh, node: "new" } : { groups: [] };
}

/**
 * The result if something could not be read. `worst` are the claims for the worst case: without a violation among them
 * the result does not depend on the unread object.
 */
export function unread(what: string, why: string, worst: readonly EvaluatedClaim[]): Decision {
  if (!worst.some(isViolation)) return allow();
  const denied = worst.some((one) => verdictOf(one) === "deny");
  const message = `${what} could not be read, so that it is not known whether it is protected; try again`;
  const finding: Finding = {
    rule: "read",
    outcome: "failed",
    code: "USHER-G11",
    message,
    audit: { key: "unread", value: why },
    ...(denied ? {} : { warn: 80 }),
  };
  const counts = [{ metric: READ_FAILURES_TOTAL, labels: { verdict: denied ? "deny" : "allow" } }];
  return denied
    ? deny({ code: 503, reason: "ServiceUnavailable", retryAfterSeconds: 1 }, [finding], counts)
    : allow([finding], undefined, counts);
}

/** An object that no API server sends: refused if a group enforces. */
export function malformed(what: string, groups: readonly Group[]): Decision {
  const enforced = groups.some(({ effectiveMode }) => effectiveMode === "Enable");
  const message = `${what} is malformed: it can't be judged whether it is about a protected node`;
  const finding: Finding = {
    rule: "malformed",
    outcome: "failed",
    code: "USHER-G12",
    message,
    ...(enforced ? {} : { warn: 80 }),
  };
  return enforced ? deny({ code: 400, reason: "BadRequest" }, [finding]) : allow([finding]);
}
