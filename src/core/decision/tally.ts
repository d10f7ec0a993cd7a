import type { PolicyRef } from "../policy/policy-ref.ts";
import type { FindingOutcome } from "./finding.ts";

/** The outcomes of a policy, for its status. */
export interface Tally {
  readonly module: string;
  readonly policy: PolicyRef;
  /** The number of requests for each outcome; `matched`: with any finding of it. */
  readonly outcomes: Readonly<Partial<Record<FindingOutcome | "matched", number>>>;
  /** Its conflicts. */
  readonly conflicts?: readonly Conflict[];
}

/** One path of one object at which a policy had a conflict. */
export interface Conflict {
  /** `Deployment shop/web` */
  readonly object: string;
  /** `spec.template.spec.nodeSelector.zone` */
  readonly field: string;
  readonly message: string;
}

/** Tallies of many requests together. */
export interface CountedTally extends Tally {
  /** Milliseconds since 1970 of the last request in which the policy changed something. */
  readonly lastApplied?: number;
  /** The last few, the latest first. */
  readonly conflicts?: readonly DatedConflict[];
}

export interface DatedConflict extends Conflict {
  /** Milliseconds since 1970. */
  readonly at: number;
}
