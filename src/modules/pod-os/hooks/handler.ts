import type { Result } from "../../../core/decision/decision.ts";
import { messageWithCode } from "../../../core/decision/finding.ts";
import type { Gates } from "../../../core/installation/gates.ts";
import type { Installation } from "../../../core/installation/installation.ts";
import type { WorkloadKind } from "../../../core/kubernetes/workloads.ts";
import type { Hook, Rule } from "../../../core/module/hook.ts";
import type { Context, TraceEntry } from "../../../core/module/module.ts";
import type { PolicyRef } from "../../../core/policy/policy-ref.ts";
import type { Exceptions } from "../security/exceptions/exceptions.ts";

/** One question that this module answers: its hooks, and its evaluation. */
export interface Handler {
  /** The name of its hooks. */
  readonly name: string;
  /** Empty if the settings do not need it. */
  readonly hooks: (installation: Installation, gates: Gates) => readonly Hook[];
  readonly evaluate: (context: Context, exceptions: Exceptions) => Result;
  /** The setting, gate or level that a trace names, and the trace's text if the handler found nothing. */
  readonly rule: PolicyRef;
  readonly nothing: string;
}

/** Evaluates a handler, and reports it in the trace unless it has reported its own levels and exceptions. */
export function runHandler(handler: Handler, context: Context, exceptions: Exceptions): Result {
  const { trace, draft } = context;
  if (trace === undefined) return handler.evaluate(context, exceptions);
  let reported = false;
  const mark = draft.mark();
  const reporting = (entry: TraceEntry) => {
    reported = true;
    trace(entry);
  };
  const result = handler.evaluate({ ...context, trace: reporting }, exceptions);
  if ("need" in result || reported) return result;
  const edits = draft.edits.slice(mark);
  const findings = [...edits.flatMap(({ finding }) => finding ?? []), ...result.findings];
  const said = [...new Set(findings.map(messageWithCode))];
  const found = edits.length > 0 || findings.some(({ outcome }) => outcome !== "same");
  trace({
    policy: handler.rule,
    applies: result.denial !== undefined ? "refuses" : found ? "applies" : "not",
    why: said.length > 0 ? said.join("; ") : handler.nothing,
  });
  return result;
}

/** A rule for each API group of these kinds. */
export function workloadRules(
  workloads: readonly WorkloadKind[],
  operations: Rule["operations"],
): readonly Rule[] {
  const groups = Map.groupBy(workloads, ({ group }) => group);
  return [...groups].map(([group, kinds]) => ({
    groups: [group],
    versions: [...new Set(kinds.map(({ version }) => version))],
    resources: [...new Set(kinds.map(({ resource }) => resource))],
    operations,
    scope: "Namespaced",
  }));
}
