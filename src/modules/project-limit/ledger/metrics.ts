import type { Metric } from "../../../core/module/metric.ts";

export const RESERVATIONS = "usher_project_limit_reservations_total";
export const SETTLEMENTS = "usher_project_limit_settlements_total";
export const UNUSED = "usher_project_limit_unused_reservations_total";
export const CONFLICTS = "usher_project_limit_conflicts_total";

export const LEDGER_METRICS: readonly Metric[] = [
  {
    name: RESERVATIONS,
    type: "counter",
    help: "Places that were reserved because a creation was admitted.",
    labels: [],
  },
  {
    name: SETTLEMENTS,
    type: "counter",
    help: "Places that were released because their project was never created, is gone or is another user's.",
    labels: [],
  },
  {
    name: UNUSED,
    type: "counter",
    help: "Places among them whose project was never created: the request was refused or abandoned after it was admitted, the name existed, or no API server sent the review.",
    labels: [],
  },
  {
    name: CONFLICTS,
    type: "counter",
    help: "Reservations that were repeated because the ledger had changed.",
    labels: [],
  },
];
