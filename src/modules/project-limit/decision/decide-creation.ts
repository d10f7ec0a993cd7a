import type { Count } from "../../../core/decision/decision.ts";
import { allow, need, type Result } from "../../../core/decision/decision.ts";
import type { Finding } from "../../../core/decision/finding.ts";
import type { Need } from "../../../core/decision/need.ts";
import { nameIn } from "../../../core/decision/status.ts";
import { stringAt } from "../../../core/json.ts";
import type { Context, TraceEntry } from "../../../core/module/module.ts";
import { projectOf } from "../ledger/match-entry.ts";
import { CONFLICTS, RESERVATIONS } from "../ledger/metrics.ts";
import { type LedgerEntry, NAME_LENGTH } from "../ledger/project-usage.ts";
import { ledgerNeed, reserve } from "../ledger/reserve.ts";
import { isExempt, limitOf, type Requester, traceLimits, USERS, type UserFact } from "../policy/limit.ts";
import type { ProjectLimits } from "../policy/policy.ts";
import { namespacesOf, projectsOf, usageOf } from "../projects.ts";
import { subjectOf } from "../subject.ts";
import {
  admitted,
  type Creation,
  invalidLimits,
  ledgerBusy,
  lookupFailed,
  overLimit,
  userMissing,
} from "./responses.ts";

/** Evaluates the creation of a project for a user: may it have one more? `findings` are those of earlier checks. */
export function decideCreation(
  context: Context,
  limits: ProjectLimits,
  requester: Requester,
  findings: readonly Finding[] = [],
): Result {
  const { request, facts, draft } = context;
  const { username } = requester;
  const report = (applies: TraceEntry["applies"], why: string): void =>
    context.trace?.({ policy: limits.ref, applies, why });
  const passes = (why: string): Result => {
    report("not", why);
    return allow(findings);
  };
  if (isExempt(limits, request.userInfo)) return passes(`user ${request.userInfo.username} is exempt`);
  if (limits.invalid !== undefined) {
    report("failed", `the spec is not valid: ${limits.invalid}`);
    return invalidLimits(limits);
  }
  const user: Need = { get: { resource: USERS, name: username }, live: true, mayBeUnserved: true };
  const subject = subjectOf(username, limits.serviceAccountsPer);
  // A name that no User can have is never looked up: `limitOf` decides without.
  let limit = limitOf(limits, requester, undefined);
  let found: UserFact;
  if ("needsUser" in limit) {
    const fact = facts.of(user);
    // Both are read in one round: most users are limited.
    if (fact === undefined) return limits.count === "Exact" ? need(user, ledgerNeed(subject)) : need(user);
    if ("failed" in fact) {
      const { failed: why, status, reason } = fact;
      report("failed", `the User object could not be read: ${why}`);
      return lookupFailed(limits, username, { why, status, reason });
    }
    limit = limitOf(limits, requester, fact);
    found = fact;
  }
  if (context.trace !== undefined)
    for (const entry of traceLimits(limits, requester, found)) context.trace(entry);
  if ("userMissing" in limit) {
    report("failed", `there is no User ${username}`);
    return userMissing(limits, username);
  }
  if (!("max" in limit)) return passes(`user ${username} is not limited`);
  const project = nameIn(request.name, draft.object);
  // It never becomes a project, and has no place in a ledger: the API server's own refusal explains it.
  if (project.length > NAME_LENGTH) return passes(`no namespace has a name of ${project.length} characters`);
  const why = `${limit.rule}: user ${username} may have ${limit.max} project(s)`;
  report("applies", why);
  const admit = limits.count === "Exact" ? admitExactly : admitBestEffort;
  return admit(
    context,
    {
      limits,
      subject,
      username,
      project,
      ...limit,
    },
    findings,
  );
}

/** Counts the namespaces of the view: concurrent creations may exceed the limit. */
function admitBestEffort(
  { view, request }: Context,
  creation: Creation,
  findings: readonly Finding[],
): Result {
  const usage = usageOf(projectsOf(view, creation.subject));
  if (usage.count >= creation.max) return overLimit(request, creation, usage);
  return allow([...findings, ...admitted(creation, usage)]);
}

/** Counts exactly: a place is reserved in the ledger of the subject before the creation is admitted. */
function admitExactly(context: Context, creation: Creation, findings: readonly Finding[]): Result {
  const { view, facts, request } = context;
  const { subject, max: limit, rule } = creation;
  const projects = namespacesOf(view, subject).map(projectOf);
  const reservation = reserve({ subject, limit, rule, entry: entryFor(context), projects, facts });
  if ("need" in reservation) return need(reservation.need);
  const conflicts: Count[] =
    facts.conflicts === 0 ? [] : [{ metric: CONFLICTS, labels: {}, by: facts.conflicts }];
  if ("busy" in reservation) return ledgerBusy(request, creation, reservation.busy, conflicts);
  if ("full" in reservation) return overLimit(request, creation, reservation.full, conflicts);
  const { used, commit } = reservation;
  const counts = commit === undefined ? conflicts : [...conflicts, { metric: RESERVATIONS, labels: {} }];
  return allow([...findings, ...admitted(creation, used)], commit, counts);
}

/**
 * The reservation. A Namespace already has its final uid. The namespace of a ProjectRequest is another object: whatever
 * has the name by then, except the one that has it now.
 */
function entryFor({ request, draft, view }: Context): LedgerEntry {
  const name = stringAt(draft.object, "metadata", "name") ?? request.name;
  const uid = stringAt(draft.object, "metadata", "uid");
  if (request.resource.resource === "namespaces" && uid !== undefined) return { name, uid };
  const replaces = stringAt(view.get("namespaces", "", name), "metadata", "uid");
  return { name, request: request.uid, ...(replaces === undefined ? {} : { replaces }) };
}
