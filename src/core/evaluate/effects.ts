import type { Count } from "../decision/decision.ts";
import type { EventToWrite, ModuleFinding, ObjectReference } from "../decision/finding.ts";
import { type AdmissionRequest, describeRequest } from "../decision/request.ts";
import type { Conflict, Tally } from "../decision/tally.ts";
import { stringAt } from "../json.ts";
import { fieldPath } from "../path.ts";
import { policyKey } from "../policy/policy-ref.ts";
import type { Evaluation } from "./evaluate-hooks.ts";

/** Annotations of an event of a review, by which it can be explained after its policy has changed. */
export const EVENT_ANNOTATIONS = {
  generation: "usher.dev/policy-generation",
  rule: "usher.dev/rule",
} as const;

/** Whether an event is about its own policy, which usher knows from its view. */
export function isAboutPolicy({ policy, regarding }: EventToWrite): boolean {
  const { kind, name, namespace } = regarding;
  return policy?.kind === kind && policy.name === name && policy.namespace === namespace;
}

/** A label with user-chosen values: this many have their own series in each process, and the rest is `other`. */
export interface CappedLabel {
  readonly label: string;
  readonly most: number;
}

/** Prometheus keeps a series for each; most of a thousand policies never match anything, so few clusters come near. */
const MOST_POLICIES = 500;

/** The counters of core. Labels are bounded: never a user, never an object's name. */
export const METRICS = {
  usher_decisions_total: {
    help: "Admission requests decided, by hook, phase and verdict (allow, patch, deny).",
    labels: ["hook", "phase", "verdict"],
  },
  usher_findings_total: {
    help: "Outcomes of policies' rules: applied, same, skipped, violated, would-violate, authorized, failed.",
    labels: ["module", "rule", "outcome"],
  },
  usher_policy_outcomes_total: {
    help: "Requests in which a cluster-wide policy had an outcome. Beyond 500 policies the others count as other; those of a namespace have it in their status.",
    labels: ["module", "policy", "outcome"],
    capped: { label: "policy", most: MOST_POLICIES },
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
  readonly observed: readonly Observed[];
}

/** A module's observation. */
export interface Observed {
  readonly module: string;
  readonly fields: Readonly<Record<string, string>>;
}

const NONE: Effects = { events: [], tallies: [], counts: [], observed: [] };

/** The effects after the response. A dry run has none. */
export function effectsOf(evaluation: Evaluation): Effects {
  if (evaluation.request.dryRun || evaluation.asked.length === 0) return NONE;
  return {
    events: eventsOf(evaluation),
    tallies: talliesOf(evaluation),
    counts: countsOf(evaluation),
    observed: observedIn(evaluation),
  };
}

/** Only the counts of the effects, for callers that need nothing else. */
export function countsAfter(evaluation: Evaluation): readonly Count[] {
  return evaluation.request.dryRun ? NONE.counts : countsOf(evaluation);
}

function eventsOf({ request, findings }: Evaluation): EventToWrite[] {
  const events: EventToWrite[] = [];
  for (const { event, message, policy, rule } of findings) {
    if (event === undefined || policy?.gone === true) continue;
    const { related = policy, ...rest } = event;
    events.push({
      ...rest,
      regarding: event.regarding ?? objectOf(request),
      message: event.message ?? message,
      policy: related === "none" ? undefined : related,
      rule,
    });
  }
  return events;
}

function observedIn({ findings }: Evaluation): Observed[] {
  return findings.flatMap(({ module, observe }) =>
    observe === undefined ? [] : [{ module, fields: observe }],
  );
}

function objectOf({ kind: type, namespace, name, object, oldObject }: AdmissionRequest): ObjectReference {
  const { group, version, kind } = type;
  const uid = stringAt(object, "metadata", "uid") ?? stringAt(oldObject, "metadata", "uid");
  // The namespace of a request for a Namespace is its own name, although the object is cluster-scoped.
  const scoped = namespace !== "" && !(group === "" && kind === "Namespace");
  return {
    apiVersion: group === "" ? version : `${group}/${version}`,
    kind,
    name: name === "" ? (stringAt(object, "metadata", "name") ?? "") : name,
    ...(scoped ? { namespace } : {}),
    ...(uid === undefined || uid === "" ? {} : { uid }),
  };
}

/** Per request: beyond this number one cause represents all. */
const MOST_CONFLICTS = 3;

function talliesOf({ findings, request }: Evaluation): Tally[] {
  const tallies = new Map<string, Omit<Tally, "outcomes"> & { outcomes: Record<string, number> }>();
  for (const finding of findings) {
    const { module, policy, outcome } = finding;
    if (policy === undefined || policy.gone === true) continue;
    const key = `${module} ${policyKey(policy)}`;
    const tally = tallies.get(key) ?? { module, policy, outcomes: { matched: 1 } };
    // One request counts once, for any number of keys that a policy set.
    tally.outcomes[outcome] = 1;
    tallies.set(
      key,
      isConflict(finding) ? { ...tally, conflicts: withConflict(tally, finding, request) } : tally,
    );
  }
  return [...tallies.values()];
}

function isConflict({ outcome, path }: ModuleFinding): boolean {
  return (
    path !== undefined && (outcome === "skipped" || outcome === "violated" || outcome === "would-violate")
  );
}

function withConflict(
  { conflicts = [] }: Pick<Tally, "conflicts">,
  { path = [], message }: ModuleFinding,
  request: Evaluation["request"],
): readonly Conflict[] {
  if (conflicts.length >= MOST_CONFLICTS) return conflicts;
  return [...conflicts, { object: describeRequest(request), field: fieldPath(path), message }];
}

function countsOf({ asked, phase, denials, patched, findings, unknown, ...evaluation }: Evaluation): Count[] {
  const counts: Count[] = [...evaluation.counts];
  for (const hook of asked) {
    const denied = denials.some((denial) => denial.hook === hook.name);
    const verdict = denied ? "deny" : patched.has(hook.name) ? "patch" : "allow";
    counts.push({ metric: "usher_decisions_total", labels: { hook: hook.name, phase, verdict } });
    if (unknown.length > 0) counts.push({ metric: "usher_unknown_total", labels: { hook: hook.name } });
  }
  // One request counts once for each outcome of a policy, for any number of parts.
  let counted: Set<string> | undefined;
  for (const { module, rule, outcome, policy } of findings) {
    counts.push({ metric: "usher_findings_total", labels: { module, rule, outcome } });
    if (policy === undefined || policy.namespace !== undefined || policy.gone === true) continue;
    const labels = { module, policy: policy.name, outcome };
    const key = `${module} ${policyKey(policy)} ${outcome}`;
    counted ??= new Set();
    if (counted.has(key)) continue;
    counted.add(key);
    counts.push({ metric: "usher_policy_outcomes_total", labels });
  }
  return counts;
}
