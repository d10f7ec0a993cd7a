import { z } from "zod";
import { DRIFT_STATES, type DriftState, type Injection } from "../../../core/drift/injections.ts";
import type { EventToWrite } from "../../../core/evaluate/effects.ts";
import type { PolicyRef } from "../../../core/evaluate/finding.ts";
import type { JsonObject } from "../../../core/json.ts";

/** Enough to begin with; `usher placement status` has them all. */
const MOST_EXAMPLES = 10;

const LONGEST_REASON = 320;

const count = (text: string) => z.int().min(0).describe(text);

/** The part of a policy's status that says how workloads stand to it. */
export const workloadsStatus = z.strictObject({
  current: count("Workloads that carry what the policy wants."),
  stale: count("Workloads that carry something of it that it no longer wants so."),
  orphaned: count("Workloads that carry something of it though it no longer wants them."),
  missing: count("Workloads that it wants and that carry nothing of it."),
  examples: z
    .array(z.string().max(640))
    .max(MOST_EXAMPLES)
    .optional()
    .describe("Some that are not current, such as: stale Deployment shop/web."),
  unread: z
    .array(z.string().max(LONGEST_REASON))
    .max(MOST_EXAMPLES)
    .optional()
    .describe("What could not be looked at, with the reason. Then the counts are of the rest."),
});

interface Totals {
  readonly counts: Record<DriftState, number>;
  readonly examples: string[];
}

/** How workloads stand to each policy, gathered over one walk through the cluster. */
export class DriftCounts {
  readonly #policies = new Map<string, Totals>();
  readonly #unread: string[] = [];

  /** `name` as in `Deployment shop/web`. */
  note(name: string, carried: readonly Injection[]): void {
    for (const { policy, state } of carried) {
      const totals = this.#policies.get(policy) ?? { counts: none(), examples: [] };
      totals.counts[state]++;
      if (state !== "current" && totals.examples.length < MOST_EXAMPLES)
        totals.examples.push(`${state} ${name}`);
      this.#policies.set(policy, totals);
    }
  }

  /** Why a part of the cluster was not looked at. */
  noteUnread(why: string): void {
    if (this.#unread.length < MOST_EXAMPLES) this.#unread.push(why.slice(0, LONGEST_REASON));
  }

  /** For its status. */
  of(policy: string): JsonObject {
    const { counts, examples } = this.#policies.get(policy) ?? { counts: none(), examples: [] };
    const unread = this.#unread;
    return {
      ...counts,
      ...(examples.length === 0 ? {} : { examples }),
      ...(unread.length === 0 ? {} : { unread }),
    };
  }

  /** Over all policies, those that are gone as well. */
  sums(): Record<DriftState, number> {
    const sums = none();
    for (const { counts } of this.#policies.values())
      for (const state of DRIFT_STATES) sums[state] += counts[state];
    return sums;
  }

  /** What to tell of a policy, where it is not what was told before. */
  event(policy: string, ref: PolicyRef, before: DriftCounts | undefined): EventToWrite | undefined {
    const was = before?.behind(policy) ?? 0;
    const is = this.behind(policy);
    if (was === is) return undefined;
    const { kind, namespace, name } = ref;
    const regarding = { kind, ...(namespace === undefined ? {} : { namespace }), name };
    if (is === 0) {
      const message = "all workloads carry what the policy wants";
      return { type: "Normal", reason: "WorkloadsCurrent", regarding, policy: ref, message };
    }
    const { counts, examples } = this.#policies.get(policy) ?? { counts: none(), examples: [] };
    const parts = DRIFT_STATES.filter((state) => state !== "current" && counts[state] > 0);
    const message = `workloads do not carry what the policy wants: ${parts.map((state) => `${counts[state]} ${state}`).join(", ")}, such as ${examples[0] ?? ""}; usher placement status shows them, usher placement reapply renews them (USHER-P40)`;
    return { type: "Warning", reason: "WorkloadsBehind", regarding, policy: ref, message };
  }

  /** How many are not as the policy wants them. */
  behind(policy: string): number {
    const counts = this.#policies.get(policy)?.counts;
    return counts === undefined ? 0 : counts.stale + counts.orphaned + counts.missing;
  }
}

function none(): Record<DriftState, number> {
  return { current: 0, stale: 0, orphaned: 0, missing: 0 };
}
