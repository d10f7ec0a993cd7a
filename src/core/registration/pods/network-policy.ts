import type { Installation } from "../../installation/installation.ts";
import type { JsonObject } from "../../json.ts";
import { OPS_PORT_NAME } from "../monitoring/monitors.ts";
import { OWN_LABELS, OWN_NAMES } from "../names.ts";

/** The port that API servers call, by the name that pods and the Service have for it. */
export const WEBHOOK_PORT_NAME = "https";

/**
 * Ingress to usher's pods, if configured. API servers are not pods and only administrators know their addresses, so
 * without these the webhook port stays open to all. Egress is allowed explicitly: if another policy of the namespace
 * denies it, usher must still reach API servers.
 */
export function networkPolicies({ namespace, networkPolicy }: Installation): JsonObject[] {
  if (networkPolicy?.enabled !== true) return [];
  const { webhookCidrs } = networkPolicy;
  return [
    {
      apiVersion: "networking.k8s.io/v1",
      kind: "NetworkPolicy",
      metadata: { name: OWN_NAMES.networkPolicy, namespace },
      spec: {
        podSelector: { matchLabels: { "app.kubernetes.io/name": OWN_LABELS["app.kubernetes.io/name"] } },
        policyTypes: ["Ingress", "Egress"],
        ingress: [
          {
            ports: [{ port: WEBHOOK_PORT_NAME, protocol: "TCP" }],
            ...(webhookCidrs.length === 0
              ? {}
              : { from: webhookCidrs.map((cidr) => ({ ipBlock: { cidr } })) }),
          },
          // Health checks come from nodes, and Prometheus may run anywhere.
          { ports: [{ port: OPS_PORT_NAME, protocol: "TCP" }] },
        ],
        egress: [{}],
      },
    },
  ];
}
