/** The caller's span, in the header format of W3C Trace Context. */
export interface CallerSpan {
  readonly traceId: string;
  readonly spanId: string;
  /** Whether the caller records its span. */
  readonly sampled: boolean;
}

/** Later versions may add fields, and only version 255 is not allowed. */
const FORM = /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(?:$|-)/;

/** Undefined if absent or unreadable. */
export function callerSpan(traceparent: unknown): CallerSpan | undefined {
  const [, traceId, spanId, flags] = FORM.exec(typeof traceparent === "string" ? traceparent : "") ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined;
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 };
}
