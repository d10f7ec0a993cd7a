import { z } from "zod";
import type { Installation } from "../../core/module/installation.ts";
import { CallError } from "../exit.ts";

/** `spec.networkPolicy` of the configuration. */
export const NETWORK_POLICY = z.strictObject({
  enabled: z
    .boolean()
    .optional()
    .describe("Whether there is a NetworkPolicy for usher's pods. Default false."),
  webhookCidrs: z
    .array(z.union([z.cidrv4(), z.cidrv6()], "must be a network, like 10.0.0.0/8 or fd00::/8"))
    .max(64)
    .optional()
    .describe("Networks from which API servers reach the webhook port. Default all."),
});

export function networkPolicyOf(
  read: z.infer<typeof NETWORK_POLICY> | undefined,
): Pick<Installation, "networkPolicy"> {
  if (read === undefined) return {};
  const { enabled = false, webhookCidrs = [] } = read;
  if (!enabled && webhookCidrs.length > 0)
    throw new CallError("spec.networkPolicy.webhookCidrs: needs enabled: true, or it has no effect");
  return { networkPolicy: { enabled, webhookCidrs } };
}
