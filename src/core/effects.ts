import type { Evaluation } from "./engine.ts";
import { type FindingEvent, type FindingOutcome, type PolicyRef, policyKey } from "./finding.ts";

/** An event to be written about an object, after the answer. */
export interface EventToWrite extends FindingEvent {
  readonly regarding: { readonly kind: string; readonly namespace?: string; readonly name: string };
  readonly message: string;
  readonly policy: PolicyRef | undefined;
}

/** How often a policy came to what, for its status. */
export interface Tally {
  readonly module: string;
  readonly policy: PolicyRef;
  /** In how many requests it came to each outcome; `matched`: in how many it had anything to say at all. */
  readonly outcomes: Readonly<Partial<Record<FindingOutcome | "matched", number>>>;
}

/** Tallies of many requests together. */
export interface CountedTally extends Tally {
  /** Milliseconds since 1970 of the last request in which the policy changed something. */
  readonly lastApplied?: number;
}

/** A step of a counter. Labels are bounded: never a user, never an object's name. */
export interface Count {
  readonly metric: keyof typeof METRICS;
  readonly labels: Readonly<Record<string, string>>;
}

/** What core counts, with the help text that a stranger reads. */
export const METRICS = {
  usher_decisions_total: {
    help: "Admission requests decided, by hook, phase and verdict (allow, patch, deny).",
    labels: ["hook", "phase", "verdict"],
  },
  usher_findings_total: {
    help: "What came of the rules of policies: applied, same, skipped, violated, would-violate, authorized, failed.",
    labels: ["module", "rule", "outcome"],
  },
  usher_unknown_total: {
    help: "Facts that a decision needed and could not get.",
    labels: ["hook"],
  },
} as const;

export interface Effects {
  readonly events: readonly EventToWrite[];
  readonly tallies: readonly Tally[];
  readonly counts: readonly Count[];
}

const NONE: Effects = { events: [], tallies: [], counts: [] };

/** What follows after the answer was sent. A dry run has no effects. */
export function effectsOf(evaluation: Evaluation): Effects {
  if (evaluation.request.dryRun || evaluation.asked.length === 0) return NONE;
  return { events: eventsOf(evaluation), tallies: talliesOf(evaluation), counts: countsOf(evaluation) };
}

/** Of the effects only the counts, for those who keep nothing else. */
export function countsAfter(evaluation: Evaluation): readonly Count[] {
  return evaluation.request.dryRun ? NONE.counts : countsOf(evaluation);
}

function eventsOf({ request, findings }: Evaluation): EventToWrite[] {
  const events: EventToWrite[] = [];
  for (const { event, message, policy } of findings) {
    if (event === undefined) continue;
    const object = {
      kind: request.kind.kind,
      name: request.name,
      ...(request.namespace === "" ? {} : { namespace: request.namespace }),
    };
    events.push({ ...event, regarding: event.regarding ?? object, message, policy });
  }
  return events;
}

function talliesOf({ findings }: Evaluation): Tally[] {
  const tallies = new Map<string, Omit<Tally, "outcomes"> & { outcomes: Record<string, number> }>();
  for (const { module, policy, outcome } of findings) {
    if (policy === undefined) continue;
    const key = `${module} ${policyKey(policy)}`;
    const tally = tallies.get(key) ?? { module, policy, outcomes: { matched: 1 } };
    // One request counts once, however many keys of it a policy set.
    tally.outcomes[outcome] = 1;
    tallies.set(key, tally);
  }
  return [...tallies.values()];
}

function countsOf({ asked, phase, denials, patched, findings, unknown }: Evaluation): Count[] {
  const counts: Count[] = [];
  for (const hook of asked) {
    const denied = denials.some((denial) => denial.hook === hook.name);
    const verdict = denied ? "deny" : patched.has(hook.name) ? "patch" : "allow";
    counts.push({ metric: "usher_decisions_total", labels: { hook: hook.name, phase, verdict } });
    if (unknown.length > 0) counts.push({ metric: "usher_unknown_total", labels: { hook: hook.name } });
  }
  for (const { module, rule, outcome } of findings) {
    counts.push({ metric: "usher_findings_total", labels: { module, rule, outcome } });
  }
  return counts;
}
