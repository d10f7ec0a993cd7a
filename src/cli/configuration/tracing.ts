import { z } from "zod";
import type { Installation } from "../../core/module/installation.ts";

/** The settings of tracing. */
export const tracing = z
  .strictObject({
    endpoint: z
      .string()
      .max(2_048)
      .regex(
        /^https?:\/\/[^\s/?#]+(\/[^\s?#]*)?$/,
        "must be a URL, such as http://collector.monitoring.svc:4318",
      )
      .describe("The URL of a collector that speaks OTLP over HTTP; /v1/traces is appended."),
    sampling: z
      .number()
      .min(0)
      .max(1)
      .optional()
      .describe("The share of reviews that are traced where the API server sends no traceparent. Default 1."),
  })
  .optional()
  .describe("Where spans of reviews go. Default none: reviews are not traced.");

export function tracingOf(read: z.infer<typeof tracing>): Pick<Installation, "tracing"> {
  if (read === undefined) return {};
  const { endpoint, sampling } = read;
  return { tracing: { endpoint, ...(sampling === undefined ? {} : { sampling }) } };
}
