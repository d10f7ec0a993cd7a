import type { JsonObject } from "../json.ts";
import type { Installation } from "../module/installation.ts";

const API = "flowcontrol.apiserver.k8s.io/v1";
const NAME = "usher";

/**
 * The seats that are usher's own, in proportion to those of others; Kubernetes' own levels have 245 together. It needs few, because
 * it writes in batches, but it must have one whatever the others do: it is rounded up.
 */
const SHARES = 20;

/** Requests of usher's that may wait for a seat. There is one flow, so one queue does; nothing of usher's should ever be refused. */
const QUEUE_LENGTH = 500;

/**
 * Before Kubernetes' own schema for all service accounts (9000), and before schemas that administrators add; after those for leader
 * election and nodes, which never match us.
 */
const PRECEDENCE = 400;

/**
 * A priority level of usher's own, and a flow schema that sends all of its requests there. Usher reads and writes while the request
 * that it judges holds a seat. In one level with its callers it would wait for seats that are free only once it has answered, and on
 * a small API server nothing would ever be created. So none of its seats is lent to anybody.
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
