import type { Count } from "../../../core/decision/decision.ts";
import { allow, type Decision, deny } from "../../../core/decision/decision.ts";
import type {
  AuditAnnotation,
  Finding,
  FindingEvent,
  ObjectReference,
} from "../../../core/decision/finding.ts";
import type { PolicyRef } from "../../../core/policy/policy-ref.ts";
import type { Group } from "../groups/group.ts";
import { CLAIMS_TOTAL } from "../metrics.ts";
import {
  type EvaluatedClaim,
  type GuardedPod,
  type GuardVerdict,
  isUnauthorized,
  isViolation,
  type Party,
  verdictOf,
} from "./evaluate-claim.ts";

/** Above other modules' warnings, below faults. */
const RANK = 70;

/** The subject of a report. */
export interface DecisionOptions {
  /** The object of the event. @default the object of the request */
  readonly regarding?: ObjectReference | undefined;
  /** The same if the request is refused: an object that is not created can't be found. */
  readonly refusedRegarding?: ObjectReference | undefined;
  /** For templates: no refusal, in any mode, and no event. */
  readonly warnOnly?: true;
}

export function groupRef({ name }: Pick<Group, "name">): PolicyRef {
  return { kind: "NodeGroup", name };
}

/** A decision from all claims of a request: refused if one of them is, and reported in any case. */
export function decide(
  claims: readonly EvaluatedClaim[],
  subject: GuardedPod,
  options: DecisionOptions = {},
  before: readonly Finding[] = [],
): Decision {
  const denied = !options.warnOnly && claims.some((one) => verdictOf(one) === "deny");
  const regarding = (denied ? options.refusedRegarding : undefined) ?? options.regarding;
  const findings = [...before, ...claims.map((one) => findingOf(one, subject, { ...options, regarding }))];
  const counts = options.warnOnly ? [] : claims.map(countOf);
  return denied
    ? deny({ code: 403, reason: "Forbidden" }, findings, counts)
    : allow(findings, undefined, counts);
}

function findingOf(
  evaluated: EvaluatedClaim,
  subject: GuardedPod,
  { regarding, warnOnly }: DecisionOptions,
): Finding {
  const { claim, group } = evaluated;
  const { rule, code } = claim;
  const policy = groupRef(group);
  const verdict = warnOnly && verdictOf(evaluated) !== "allow" ? "would-deny" : verdictOf(evaluated);
  const audit = warnOnly ? {} : { audit: auditOf(evaluated, verdict) };
  if (!isViolation(evaluated) || group.effectiveMode === "Disable") {
    const entry = evaluated.vouched ?? evaluated.actor?.by ?? evaluated.pod?.by ?? "";
    const by = isViolation(evaluated) ? `override ${group.override?.name ?? ""}` : entry;
    return { policy, rule, outcome: "authorized", message: `authorised by ${by}`, ...audit };
  }
  const message = messageOf(evaluated, subject.name);
  const shown = verdict === "deny" ? {} : { warn: RANK, warning: warningOf(evaluated) };
  const reported = verdict !== "allow" && !warnOnly;
  const event: FindingEvent = {
    type: "Warning",
    reason: verdict === "deny" ? "NodeGuardDenied" : "NodeGuardWouldDeny",
    related: group.policy ?? "none",
    ...(regarding === undefined ? {} : { regarding }),
  };
  return {
    policy,
    rule,
    outcome: verdict === "deny" ? "violated" : verdict === "would-deny" ? "would-violate" : "skipped",
    code,
    message,
    ...shown,
    ...audit,
    ...(reported ? { event, observe: refusalOf(evaluated, subject) } : {}),
  };
}

/** The keys of the guide; the API server puts the webhook's name before them. */
function auditOf(
  { claim, group, nodes, actor, pod, vouched }: EvaluatedClaim,
  verdict: GuardVerdict,
): AuditAnnotation[] {
  const by = vouched ?? [actor?.by, pod?.by].filter((entry) => entry !== undefined).join(", ");
  const reason = group.override !== undefined ? "override" : vouched !== undefined ? "vouched" : claim.rule;
  const ok = (party: Party | undefined) =>
    party === undefined ? "" : String(party.by !== undefined || vouched !== undefined);
  const values: Readonly<Record<string, string>> = {
    mode: group.effectiveMode,
    verdict,
    group: group.name,
    node: nodes.slice(0, 16).join(", "),
    claim: claim.rule,
    "actor-ok": ok(actor),
    "pod-ok": ok(pod),
    entry: by,
    rule: reason,
  };
  return Object.entries(values).flatMap(([key, value]) => (value === "" ? [] : [{ key, value }]));
}

/** The input of `learn`. */
function refusalOf(
  { group, actor, pod }: EvaluatedClaim,
  { request, namespace, account }: GuardedPod,
): Record<string, string> {
  const podFailed = isUnauthorized(pod);
  return {
    group: group.name,
    actor: isUnauthorized(actor) ? request.userInfo.username : "",
    namespace: podFailed ? namespace : "",
    serviceAccount: podFailed ? (account ?? "default") : "",
  };
}

function countOf(evaluated: EvaluatedClaim): Count {
  const { claim, group } = evaluated;
  const labels = { group: group.name, claim: claim.rule, verdict: verdictOf(evaluated) };
  return { metric: CLAIMS_TOTAL, labels };
}

/** More names help no reader. */
const MOST_NODES = 3;

/** The failed part, the group, the node and the fix; never the authorised subjects, and the same at every retry. */
function messageOf(evaluated: EvaluatedClaim, subject: string): string {
  const { claim, group, actor, pod } = evaluated;
  const failing = unauthorizedNames(evaluated);
  const fine = [actor, pod].flatMap((party) => (party?.by === undefined ? [] : [party.name]));
  const why = `${failing.join(" and ")} ${failing.length > 1 ? "are" : "is"} not authorised${
    fine.length === 0 ? "" : ` (${fine.join(", ")} is)`
  }`;
  const found = `${subject} ${claim.says} ${whereOf(evaluated)}: ${why}. ${claim.fix}`;
  if (!claim.refused) return found;
  const lists = [
    ...(isUnauthorized(actor) ? ["the user (assigners)"] : []),
    ...(isUnauthorized(pod) ? ["the pod's service account (workloads)"] : []),
  ];
  return `${found}, or ask a cluster administrator to authorise ${lists.join(" and ")} in group ${group.name}`;
}

/** The same in a line that clients show whole. */
function warningOf(evaluated: EvaluatedClaim): string {
  const { claim, group } = evaluated;
  const failing = unauthorizedNames(evaluated).join(" and ");
  return `${claim.warns} protected group ${group.name}: ${failing} not authorised`;
}

function unauthorizedNames({ actor, pod }: EvaluatedClaim): string[] {
  return [actor, pod].flatMap((party) => (party !== undefined && isUnauthorized(party) ? [party.name] : []));
}

function whereOf({ claim, nodes, group, node }: EvaluatedClaim): string {
  const of = `protected group "${group.name}"`;
  // The subject is the node.
  if (claim.rule === "node-labels") return of;
  if (node === "unknown") return `node ${namesOf(nodes)}, which is not known and counts as a member of ${of}`;
  if (node === "new")
    return `node ${namesOf(nodes)}, which has just joined and may become a member of ${of}; it is tried again after a while`;
  if (nodes.length === 0) return `nodes of ${of}`;
  return `${nodes.length === 1 ? "node" : "nodes"} ${namesOf(nodes)} of ${of}`;
}

function namesOf(nodes: readonly string[]): string {
  const rest = nodes.length - MOST_NODES;
  return `${nodes.slice(0, MOST_NODES).join(", ")}${rest > 0 ? ` and ${rest} more` : ""}`;
}
