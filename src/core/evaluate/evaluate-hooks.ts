import type { Count } from "../decision/decision.ts";
import { allow, type Commit, type Decision, type Denial, deny } from "../decision/decision.ts";
import { Draft } from "../decision/draft.ts";
import type { Finding, ModuleFinding } from "../decision/finding.ts";
import { type Facts, type Need, needKey } from "../decision/need.ts";
import { leaveChange } from "../decision/patch.ts";
import { type AdmissionRequest, describeRequest } from "../decision/request.ts";
import type { Assembly } from "../module/assembly.ts";
import type { Hook, Phase } from "../module/hook.ts";
import { askedName, hookWants } from "../module/hook.ts";
import type { Context, TraceEntry } from "../module/module.ts";
import { describeProblem } from "../policy/problem.ts";
import { writeProvenance } from "../provenance/provenance.ts";

/** The input of an evaluation: an admission request, with the hooks and the assembly. */
export interface EvaluationRequest {
  readonly assembly: Assembly;
  readonly phase: Phase;
  /** In order; each runs only if its rules match the request. */
  readonly hooks: readonly Hook[];
  readonly request: AdmissionRequest;
  /** The draft of the mutating phase, for the validating one. @default created from the request */
  readonly draft?: Draft;
  readonly now: number;
  readonly trace?: boolean;
  /** @default none */
  readonly observer?: HookObserver | undefined;
}

/** Called for each run of a hook, for a shell that measures: the core reads no clock. */
export interface HookObserver {
  readonly began: (hook: Hook) => void;
  readonly ended: (hook: Hook) => void;
}

export interface ModuleTrace extends TraceEntry {
  readonly module: string;
}

/** The result of an evaluation: plain data, and the draft. Response and effects are derived from it. */
export interface Evaluation {
  readonly request: AdmissionRequest;
  readonly phase: Phase;
  readonly draft: Draft;
  readonly denials: readonly (Denial & { readonly module: string; readonly hook: string })[];
  readonly findings: readonly ModuleFinding[];
  readonly commits: readonly Commit[];
  /** Steps of counters that modules declare. */
  readonly counts: readonly Count[];
  /** Needs that were not found. */
  readonly unknown: readonly Need[];
  readonly trace: readonly ModuleTrace[];
  /** The hooks that ran. */
  readonly asked: readonly Hook[];
  /** The names of those that changed the object. */
  readonly patched: ReadonlySet<string>;
  /**
   * The caller did not prove to be an API server: the object, the user and everything else of the request are claims.
   * @default verified
   */
  readonly unverified?: true;
}

/** A request without an object (DELETE) is evaluated by the stored one; one with neither by an empty one. */
export function draftOf(request: AdmissionRequest): Draft {
  return new Draft(request.object ?? request.oldObject ?? {}, request.oldObject);
}

/**
 * One round: every hook in order on one draft. If something is needed, the edits are undone and all needs are returned
 * together, to be fetched at once; later hooks still run, for their needs.
 */
export function evaluateHooks(
  evaluation: EvaluationRequest,
  facts: Facts,
): { readonly needs: readonly Need[] } | Evaluation {
  const { assembly, phase, request, hooks, now } = evaluation;
  const draft = evaluation.draft ?? draftOf(request);
  const start = draft.mark();
  const needs = new Map<string, Need>();
  const decided: HookDecision[] = [];
  const trace: ModuleTrace[] = [];
  const asked: Hook[] = [];
  for (const hook of hooks) {
    if (hook.phase !== phase || !hookWants(hook, request) || isAnswered(hook, asked)) continue;
    const evaluate = assembly.evaluator(hook.module)?.[phase];
    if (evaluate === undefined) continue;
    asked.push(hook);
    const mark = draft.mark();
    if (request.tooLarge !== undefined) {
      decided.push({ hook, decision: unread(hook, request, request.tooLarge), edits: [mark, mark] });
      continue;
    }
    draft.author = hook.module;
    evaluation.observer?.began(hook);
    try {
      const context: Context = {
        request,
        draft,
        view: assembly.view,
        facts,
        now,
        installation: assembly.installation,
        gates: assembly.gates,
        hook: askedName(hook),
      };
      const result = evaluate(evaluation.trace ? { ...context, trace: tracer(hook.module, trace) } : context);
      if ("need" in result) {
        draft.undo(mark);
        if (facts.closed) throw new Error(`needs ${result.need.length} more facts after the last round`);
        for (const one of result.need) needs.set(needKey(one), one);
      } else decided.push({ hook, decision: result, edits: [mark, draft.mark()] });
    } catch (error) {
      // Edits of a module that threw can't be trusted.
      draft.undo(mark);
      decided.push({ hook, decision: broken(hook, error), edits: [mark, mark] });
    }
    evaluation.observer?.ended(hook);
  }
  if (needs.size > 0) {
    draft.undo(start);
    return { needs: [...needs.values()] };
  }
  if (evaluation.trace) trace.push(...inertPolicies(assembly, asked));
  return evaluationOf(evaluation, draft, decided, facts, trace, asked);
}

/** Whether a hook that is served under the same name ran already. */
function isAnswered(hook: Hook, asked: readonly Hook[]): boolean {
  for (const other of asked) if (askedName(other) === askedName(hook)) return true;
  return false;
}

function tracer(module: string, trace: ModuleTrace[]): (entry: TraceEntry) => void {
  return (entry) => trace.push({ module, ...entry });
}

/** Policies without a usable part never reach their module, so it can't trace why they did not apply. */
function inertPolicies(assembly: Assembly, asked: readonly Hook[]): ModuleTrace[] {
  const entries: ModuleTrace[] = [];
  for (const module of new Set(asked.map((hook) => hook.module))) {
    for (const { ref, policy, problems } of assembly.policies(module)) {
      if (policy !== undefined) continue;
      const wrong = problems.find(({ severity }) => severity === "error");
      entries.push(
        wrong === undefined
          ? { module, policy: ref, applies: "not", why: "the policy selects nothing" }
          : {
              module,
              policy: ref,
              applies: "failed",
              why: `the policy is not valid: ${describeProblem(wrong)}`,
            },
      );
    }
  }
  return entries;
}

/** The decision of one hook, and the marks of the draft around its edits. */
interface HookDecision {
  readonly hook: Hook;
  readonly decision: Decision;
  readonly edits: readonly [number, number];
}

function evaluationOf(
  { assembly, request, phase }: EvaluationRequest,
  draft: Draft,
  decided: readonly HookDecision[],
  facts: Facts,
  trace: readonly ModuleTrace[],
  asked: readonly Hook[],
): Evaluation {
  const findings: ModuleFinding[] = [];
  const denials: (Denial & { module: string; hook: string })[] = [];
  const commits: Commit[] = [];
  const counts: Count[] = [];
  const patched = new Set<string>();
  for (const { hook, decision, edits } of decided) {
    if (leaveChange(draft, edits[0], edits[1])) patched.add(hook.name);
    for (let i = edits[0]; i < edits[1]; i++) {
      const finding = draft.edits[i]?.finding;
      if (finding !== undefined) findings.push(finding);
    }
    for (const finding of decision.findings) findings.push({ ...finding, module: hook.module });
    if (decision.denial !== undefined) {
      denials.push({ ...decision.denial, module: hook.module, hook: hook.name });
    }
    if (decision.commit !== undefined) commits.push(decision.commit);
    if (decision.counts.length > 0) counts.push(...decision.counts);
  }
  if (phase === "mutate" && denials.length === 0 && request.object !== undefined && asked.length > 0) {
    const isAskedApart = (module: string): boolean =>
      !asked.some((hook) => hook.module === module) &&
      assembly.hooks.some(
        (hook) => hook.module === module && hook.phase === phase && hookWants(hook, request),
      );
    if (!writeProvenance(draft, findings, request.oldObject, isAskedApart))
      findings.push(PROVENANCE_LEFT_OUT);
  }
  return {
    request,
    phase,
    draft,
    denials,
    findings,
    commits,
    counts,
    unknown: facts.missing(),
    trace,
    asked,
    patched,
  };
}

const PROVENANCE_LEFT_OUT: ModuleFinding = {
  module: "usher",
  rule: "provenance",
  outcome: "skipped",
  code: "USHER-E02",
  message: "the object's annotations leave no room to record which policy changed what",
  warn: 10,
};

/** Without the objects of a request no module can evaluate it; its hook's `tooLarge` decides. */
function unread(hook: Hook, request: AdmissionRequest, why: string): Decision {
  const denies = hook.tooLarge === "deny";
  const consequence = denies ? "make the object smaller" : "it passes as it is; make the object smaller";
  const message = `${describeRequest(request)} is too large for module ${hook.module} to read: ${why}; ${consequence}`;
  const finding: Finding = {
    rule: "size",
    outcome: denies ? "violated" : "skipped",
    code: "USHER-E05",
    message,
    audit: { key: "too-large", value: `${why} (USHER-E05)` },
    ...(denies ? {} : { warn: 90 }),
  };
  return denies ? deny({ code: 413, reason: "RequestEntityTooLarge" }, [finding]) : allow([finding]);
}

/** A module that throws has failed; its hook's failure mode decides. */
function broken(hook: Hook, error: unknown): Decision {
  const message = `internal error in module ${hook.module}`;
  const finding: Finding = {
    rule: "evaluation",
    outcome: "failed",
    code: "USHER-E01",
    message,
    audit: { key: "fault", value: `${message} (USHER-E01)` },
    error,
    ...(hook.failure === "open" ? { warn: 90 } : {}),
  };
  return hook.failure === "open" ? allow([finding]) : deny({ code: 500, reason: "InternalError" }, [finding]);
}
