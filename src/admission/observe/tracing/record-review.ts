import {
  type Attributes,
  type Context,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from "@opentelemetry/api";
import { resourceName } from "../../../core/decision/request.ts";
import type { Evaluation } from "../../../core/evaluate/evaluate-hooks.ts";
import type { Hook } from "../../../core/module/hook.ts";
import type { ReviewTrace } from "./tracing.ts";

/** One run of a hook, by `performance.now()`. A hook runs again when it needed facts. */
interface Run {
  readonly hook: Hook;
  readonly began: number;
  ended: number;
}

/** Times are recorded while the review runs; spans are created from them after the response. */
export function recordReview(
  tracer: Tracer,
  parent: Context,
  started: number,
  onError: (error: unknown) => void,
): ReviewTrace {
  const runs: Run[] = [];
  return {
    began: (hook) => {
      const began = performance.now();
      runs.push({ hook, began, ended: began });
    },
    ended: () => {
      const last = runs.at(-1);
      if (last !== undefined) last.ended = performance.now();
    },
    end: (response) => {
      // The response is sent: a fault here must not affect it.
      try {
        makeSpans(tracer, parent, started, runs, response);
      } catch (error) {
        onError(error);
      }
    },
  };
}

function makeSpans(
  tracer: Tracer,
  parent: Context,
  started: number,
  runs: readonly Run[],
  { status, phase, evaluation }: Parameters<ReviewTrace["end"]>[0],
): void {
  const ended = performance.now();
  // Converted with the current wall clock: the two clocks drift apart while a process runs for weeks.
  const offset = Date.now() - ended;
  const { resource, attributes } = ofRequest(evaluation);
  const span = tracer.startSpan(
    [phase ?? "review", ...(resource === undefined ? [] : [resource])].join(" "),
    {
      kind: SpanKind.SERVER,
      startTime: started + offset,
      attributes: {
        ...(phase === undefined ? {} : { "usher.phase": phase }),
        ...attributes,
        "http.response.status_code": status,
      },
    },
    parent,
  );
  const context = trace.setSpan(parent, span);
  for (const [i, { hook, ...run }] of runs.entries()) {
    const isLast = runs.findLastIndex((other) => other.hook === hook) === i;
    const child = tracer.startSpan(
      hook.module,
      {
        startTime: run.began + offset,
        attributes: {
          "usher.module": hook.module,
          "usher.hook": hook.name,
          "usher.verdict": isLast && evaluation !== undefined ? verdictOf(evaluation, hook) : "undecided",
        },
      },
      context,
    );
    if (isLast && isBroken(evaluation, hook)) child.setStatus({ code: SpanStatusCode.ERROR });
    child.end(run.ended + offset);
  }
  if (status >= 500) span.setStatus({ code: SpanStatusCode.ERROR });
  span.end(ended + offset);
}

/** The attributes of a request, without users and object names. */
function ofRequest(evaluation: Evaluation | undefined): { resource?: string; attributes: Attributes } {
  if (evaluation === undefined) return { attributes: {} };
  const { uid, operation, resource: of, subResource, dryRun } = evaluation.request;
  const resource = [resourceName(of), ...(subResource === "" ? [] : [subResource])].join("/");
  return {
    resource,
    attributes: {
      "usher.uid": uid,
      "usher.operation": operation,
      "usher.resource": resource,
      "usher.dry_run": dryRun,
      "usher.verdict": verdictOf(evaluation),
    },
  };
}

/** As in metrics: one hook, or all together. */
function verdictOf({ denials, patched }: Evaluation, hook?: Hook): "allow" | "patch" | "deny" {
  if (denials.some((denial) => hook === undefined || denial.hook === hook.name)) return "deny";
  const changed = hook === undefined ? patched.size > 0 : patched.has(hook.name);
  return changed ? "patch" : "allow";
}

function isBroken(evaluation: Evaluation | undefined, { module }: Hook): boolean {
  return evaluation?.findings.some((one) => one.module === module && one.error !== undefined) ?? false;
}
