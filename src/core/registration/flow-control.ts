import type { Installation } from "../installation/installation.ts";
import type { JsonObject } from "../json.ts";

const API = "flowcontrol.apiserver.k8s.io/v1";
const NAME = "usher";

/**
 * Usher's own seats, in proportion to those of others; Kubernetes' own levels have 245 together. It needs few, because
 * it writes in batches, but it must always have one: the number is rounded up.
 */
const SHARES = 20;

/** Requests of usher that may wait for a seat. There is one flow, so one queue suffices; no request of usher should be refused. */
const QUEUE_LENGTH = 500;

/**
 * Before Kubernetes' own schema for all service accounts (9000), and before schemas that administrators add; after those for leader
 * election and nodes, which never match us.
 */
const PRECEDENCE = 400;

/**
 * Usher's own priority level, and a flow schema that assigns all of its requests to it. Usher reads and writes while
 * the request that it evaluates holds a seat. In one level with its callers it would wait for seats that are released
 * only once it has answered, and on a small API server nothing would be created. So none of its seats is lent.
 */
export function flowControl(
  { namespace }: Pick<Installation, "namespace">,
  { name = NAME, account = name }: { readonly name?: string; readonly account?: string } = {},
): JsonObject[] {
  return [
    {
      apiVersion: API,
      kind: "PriorityLevelConfiguration",
      metadata: { name },
      spec: {
        type: "Limited",
        limited: {
          nominalConcurrencyShares: SHARES,
          lendablePercent: 0,
          limitResponse: {
            type: "Queue",
            queuing: { queues: 1, handSize: 1, queueLengthLimit: QUEUE_LENGTH },
          },
        },
      },
    },
    {
      apiVersion: API,
      kind: "FlowSchema",
      metadata: { name },
      spec: {
        priorityLevelConfiguration: { name },
        matchingPrecedence: PRECEDENCE,
        rules: [
          {
            subjects: [
              {
                kind: "ServiceAccount",
                serviceAccount: { name: account, namespace },
              },
            ],
            resourceRules: [
              { verbs: ["*"], apiGroups: ["*"], resources: ["*"], namespaces: ["*"], clusterScope: true },
            ],
            nonResourceRules: [{ verbs: ["*"], nonResourceURLs: ["*"] }],
          },
        ],
      },
    },
  ];
}
