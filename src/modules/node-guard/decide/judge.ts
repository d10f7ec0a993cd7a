import { allow, type Decision, deny } from "../../../core/evaluate/decision.ts";
import type { Finding } from "../../../core/evaluate/finding.ts";
import { type Facts, failureOf, type Need } from "../../../core/evaluate/need.ts";
import { isObject, type JsonObject, stringAt } from "../../../core/json.ts";
import type { Context } from "../../../core/module/module.ts";
import { groupsOfNode } from "../claims/candidates.ts";
import type { Claim } from "../claims/claim.ts";
import type { Group } from "../groups/group.ts";
import { READ_FAILURES_TOTAL } from "../metrics.ts";
import { emergencyMatches } from "../principals/principal.ts";
import { authorizeActor, authorizePod } from "./authorize.ts";
import { isViolation, type Judgement, type Side, verdictOf } from "./judgement.ts";
import type { GuardedPod } from "./subject.ts";

/** A node as it was read: `unknown` where there is none of this name. */
export type ReadNode =
  | { readonly node: JsonObject | "unknown" }
  | { readonly failed: string }
  | { readonly need: readonly Need[] };

/** Reads a node: live, or only where the cache does not have it. */
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

/** The groups that a node counts as a member of, and why where that is not by its labels. */
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

/** What to judge: a claim on nodes of some groups. */
export interface Claimed {
  readonly claim: Claim;
  readonly groups: readonly Group[];
  readonly nodes: readonly string[];
  readonly node?: "unknown" | "new";
  /** The pod's service account does not belong to the pod that was asked about: it authorises nothing. */
  readonly otherPod?: boolean;
}

export type ClaimJudgements =
  | { readonly judgements: readonly Judgement[] }
  | { readonly need: readonly Need[] };

/** Judges a claim in each group: both sides where the claim asks for both. */
export function judge(claimed: Claimed, subject: GuardedPod, facts: Facts): ClaimJudgements {
  const judgements: Judgement[] = [];
  const needs: Need[] = [];
  const { claim, nodes, node } = claimed;
  for (const group of claimed.groups) {
    const asksActor =
      claim.actor === "always" || (claim.actor === "option" && group.checkRequesterOnSelection);
    const actor = asksActor ? authorizeActor(group, subject.request, facts) : undefined;
    const pod = authorizePod(group, subject.namespace, subject.account, facts);
    if (actor !== undefined && "need" in actor) needs.push(...actor.need);
    if ("need" in pod) needs.push(...pod.need);
    if ((actor !== undefined && "need" in actor) || "need" in pod) continue;
    const emergency = claim.rule === "assign" ? emergencyMatches(subject.request.userInfo, group) : undefined;
    const podBy =
      claimed.otherPod && (group.serviceAccountScope === "Exact" || group.rbac) ? undefined : pod.by;
    judgements.push({
      rule: claim.rule,
      code: claim.code,
      refused: claim.refused,
      group,
      nodes,
      ...(node === undefined ? {} : { node }),
      ...(actor === undefined ? {} : { actor: actorSide(subject, actor.by) }),
      pod: podSide(subject, group, podBy),
      ...(emergency === undefined ? {} : { vouched: emergency.entry }),
    });
  }
  return needs.length > 0 ? { need: needs } : { judgements };
}

export function actorSide({ request }: GuardedPod, by: string | undefined): Side {
  return { name: `user "${request.userInfo.username}"`, by };
}

function podSide(
  { namespace, account }: GuardedPod,
  { serviceAccountScope }: Group,
  by: string | undefined,
): Side {
  const exact = serviceAccountScope === "Exact" && account !== undefined;
  return { name: exact ? `service account "${namespace}/${account}"` : `namespace "${namespace}"`, by };
}

/**
 * What happens where something could not be read. `judgements` are those that the worst reading would give: without a violation among
 * them the result does not depend on what was not read.
 */
export function unread(what: string, why: string, judgements: readonly Judgement[]): Decision {
  if (!judgements.some(isViolation)) return allow();
  const denied = judgements.some((one) => verdictOf(one) === "deny");
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

/** An object that no API server sends: refused where a group enforces. */
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
