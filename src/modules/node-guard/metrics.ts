import type { Metric } from "../../core/module/metric.ts";

/** As many groups as one object may have; others share the series `other`. */
const GROUP_LABEL = { name: "group", limit: 16 } as const;

export const OVERRIDE_ACTIVE = "usher_node_guard_override_active";
export const PROTECTED_NODES = "usher_node_guard_protected_nodes";
export const RUNNING_VIOLATIONS = "usher_node_guard_running_violations";

export const STATUS_METRICS: readonly Metric[] = [
  {
    name: OVERRIDE_ACTIVE,
    type: "gauge",
    help: "Overrides of a group that count now. Only the leader has it.",
    labels: [GROUP_LABEL],
  },
  {
    name: PROTECTED_NODES,
    type: "gauge",
    help: "Nodes of a group. Only the leader has it.",
    labels: [GROUP_LABEL],
  },
  {
    name: RUNNING_VIOLATIONS,
    type: "gauge",
    help: "Running pods on nodes of a group that are not authorised; none is evicted. Only the leader has it.",
    labels: [GROUP_LABEL],
  },
];

export const CLAIMS_TOTAL = "usher_node_guard_claims_total";
export const READ_FAILURES_TOTAL = "usher_node_guard_read_failures_total";

/** Labels are bounded: never a user, a namespace or a node. */
export const DECISION_METRICS: readonly Metric[] = [
  {
    name: CLAIMS_TOTAL,
    type: "counter",
    help: "Claims on protected nodes, by group, claim and verdict (allow, would-deny, deny).",
    labels: [
      GROUP_LABEL,
      {
        name: "claim",
        values: [
          "assign",
          "bind",
          "pinned",
          "exclusive",
          "implied",
          "possible",
          "retain",
          "node-labels",
          "access",
        ],
      },
      { name: "verdict", values: ["allow", "would-deny", "deny"] },
    ],
  },
  {
    name: READ_FAILURES_TOTAL,
    type: "counter",
    help: "Requests about a node or pod that could not be read, by what happened (deny, allow).",
    labels: [{ name: "verdict", values: ["allow", "deny"] }],
  },
];
