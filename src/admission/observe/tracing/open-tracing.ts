import { setTimeout as pause } from "node:timers/promises";
import { ROOT_CONTEXT, TraceFlags, trace } from "@opentelemetry/api";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { resourceFromAttributes } from "@opentelemetry/resources";
import { BatchSpanProcessor, type SpanExporter, TracerProvider } from "@opentelemetry/sdk-trace";
import type { Tracing } from "../../../core/installation/installation.ts";
import { factsOf, type Log } from "../../../core/log.ts";
import { recordReview } from "./record-review.ts";
import { callerSpan } from "./traceparent.ts";
import type { ReviewTracer } from "./tracing.ts";

/** Names of resources and uids have at most 253 characters; anything longer is a client's own. */
const ATTRIBUTE_LENGTH = 256;

/** A collector is near. Spans that it does not accept in time are dropped; a review never waits. */
const EXPORT_TIMEOUT_MS = 5_000;

/** A shutdown does not wait longer for spans. */
const LAST_EXPORT_MS = 2_000;

export interface OpenTracingOptions extends Tracing {
  readonly version?: string | undefined;
  /** The pod of this replica. */
  readonly instance?: string | undefined;
  readonly log: Log;
  /** @default Math.random */
  readonly random?: () => number;
}

/** Only this folder loads OpenTelemetry, and this file is imported only if tracing is on. */
export function openTracing(options: OpenTracingOptions): ReviewTracer {
  const { endpoint, sampling = 1, version, instance, log, random = Math.random } = options;
  const url = `${endpoint.replace(/\/+$/, "")}/v1/traces`;
  const exporter = reporting(new OTLPTraceExporter({ url, timeoutMillis: EXPORT_TIMEOUT_MS }), url, log);
  const provider = new TracerProvider({
    resource: resourceFromAttributes({
      "service.name": "usher",
      ...(version === undefined ? {} : { "service.version": version }),
      ...(instance === undefined ? {} : { "service.instance.id": instance }),
    }),
    spanLimits: { attributeValueLengthLimit: ATTRIBUTE_LENGTH },
    // Its queue is bounded: further spans are dropped.
    spanProcessors: [new BatchSpanProcessor({ exporter })],
  });
  const tracer = provider.getTracer("usher", version);
  return {
    begin: (headers, started) => {
      const caller = callerSpan(headers["traceparent"]);
      // Follows the caller's sampling decision.
      if (!(caller?.sampled ?? random() < sampling)) return undefined;
      const parent =
        caller === undefined
          ? ROOT_CONTEXT
          : trace.setSpanContext(ROOT_CONTEXT, {
              traceId: caller.traceId,
              spanId: caller.spanId,
              traceFlags: TraceFlags.SAMPLED,
              isRemote: true,
            });
      return recordReview(tracer, parent, started, (error) =>
        log.error(factsOf(error), "internal error tracing a review"),
      );
    },
    stop: async () => {
      const last = provider.shutdown().catch(() => undefined);
      await Promise.race([last, pause(LAST_EXPORT_MS, undefined, { ref: false })]);
    },
  };
}

/** Logs once that a collector rejects spans, and once that it accepts them again. */
function reporting(inner: SpanExporter, url: string, log: Log): SpanExporter {
  let failing = false;
  return {
    export: (spans, done) =>
      inner.export(spans, (result) => {
        const { error } = result;
        if (error !== undefined && !failing)
          log.warn({ url, error: error.message }, "failed to export spans");
        if (error === undefined && failing) log.info({ url }, "spans are exported again");
        failing = error !== undefined;
        done(result);
      }),
    shutdown: () => inner.shutdown(),
    forceFlush: async () => inner.forceFlush?.(),
  };
}
