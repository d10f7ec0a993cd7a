import { allow, type Decision, deny } from "../../../core/evaluate/decision.ts";
import type {
  AuditAnnotation,
  Finding,
  FindingEvent,
  ObjectReference,
  PolicyRef,
} from "../../../core/evaluate/finding.ts";
import type { Count } from "../../../core/module/metric.ts";
import type { Group } from "../groups/group.ts";
import { CLAIMS_TOTAL } from "../metrics.ts";
import { type GuardVerdict, isViolation, type Judgement, type Side, verdictOf } from "./judgement.ts";
import { messageOf, warningOf } from "./message.ts";
import type { GuardedPod } from "./subject.ts";

/** Above what other modules warn of, below faults. */
const RANK = 70;

/** What a decision is reported for. */
export interface DecisionOptions {
  /** The object of the event. @default the object of the request */
  readonly regarding?: ObjectReference | undefined;
  /** The same where the request is refused: an object that is not created can't be found. */
  readonly refusedRegarding?: ObjectReference | undefined;
  /** Of templates: no refusal, whatever the mode, and no event. */
  readonly warnOnly?: true;
}

export function groupRef({ name }: Pick<Group, "name">): PolicyRef {
  return { kind: "NodeGroup", name };
}

/** A decision from all judgements of a request: refused where one of them is, and reported in any case. */
export function decide(
  judgements: readonly Judgement[],
  subject: GuardedPod,
  options: DecisionOptions = {},
  before: readonly Finding[] = [],
): Decision {
  const denied = !options.warnOnly && judgements.some((judgement) => verdictOf(judgement) === "deny");
  const regarding = (denied ? options.refusedRegarding : undefined) ?? options.regarding;
  const findings = [
    ...before,
    ...judgements.map((judgement) => findingOf(judgement, subject, { ...options, regarding })),
  ];
  const counts = options.warnOnly ? [] : judgements.map(countOf);
  return denied
    ? deny({ code: 403, reason: "Forbidden" }, findings, counts)
    : allow(findings, undefined, counts);
}

function findingOf(
  judgement: Judgement,
  subject: GuardedPod,
  { regarding, warnOnly }: DecisionOptions,
): Finding {
  const { rule, code, group } = judgement;
  const policy = groupRef(group);
  const verdict = warnOnly && verdictOf(judgement) !== "allow" ? "would-deny" : verdictOf(judgement);
  const audit = warnOnly ? {} : { audit: auditOf(judgement, verdict) };
  if (!isViolation(judgement) || group.effectiveMode === "Disable") {
    const entry = judgement.vouched ?? judgement.actor?.by ?? judgement.pod?.by ?? "";
    const by = isViolation(judgement) ? `override ${group.override?.name ?? ""}` : entry;
    return { policy, rule, outcome: "authorized", message: `authorized by ${by}`, ...audit };
  }
  const message = messageOf(judgement, subject.name);
  const shown = verdict === "deny" ? {} : { warn: RANK, warning: warningOf(judgement) };
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
    ...(reported ? { event, observe: refusalOf(judgement, subject) } : {}),
  };
}

/** The keys of the guide; the API server puts the webhook's name before them. */
function auditOf(
  { group, nodes, rule, actor, pod, vouched }: Judgement,
  verdict: GuardVerdict,
): AuditAnnotation[] {
  const by = vouched ?? [actor?.by, pod?.by].filter((entry) => entry !== undefined).join(", ");
  const reason = group.override !== undefined ? "override" : vouched !== undefined ? "vouched" : rule;
  const ok = (side: Side | undefined) =>
    side === undefined ? "" : String(side.by !== undefined || vouched !== undefined);
  const values: Readonly<Record<string, string>> = {
    mode: group.effectiveMode,
    verdict,
    group: group.name,
    node: nodes.slice(0, 16).join(", "),
    claim: rule,
    "actor-ok": ok(actor),
    "pod-ok": ok(pod),
    entry: by,
    rule: reason,
  };
  return Object.entries(values).flatMap(([key, value]) => (value === "" ? [] : [{ key, value }]));
}

/** What `learn` makes entries of. */
function refusalOf(
  { group, actor, pod }: Judgement,
  { request, namespace, account }: GuardedPod,
): Record<string, string> {
  const podFailed = pod !== undefined && pod.by === undefined;
  return {
    group: group.name,
    actor: actor !== undefined && actor.by === undefined ? request.userInfo.username : "",
    namespace: podFailed ? namespace : "",
    serviceAccount: podFailed ? (account ?? "default") : "",
  };
}

function countOf(judgement: Judgement): Count {
  const labels = { group: judgement.group.name, claim: judgement.rule, verdict: verdictOf(judgement) };
  return { metric: CLAIMS_TOTAL, labels };
}
