import { z } from "zod";
import type { EventToWrite } from "../../../core/decision/finding.ts";
import { DRIFT_STATES, type Injection, type InjectionState } from "../../../core/drift/compare-injections.ts";
import { fairShare } from "../../../core/evaluate/fair-share.ts";
import type { JsonObject } from "../../../core/json.ts";
import type { PolicyRef } from "../../../core/policy/policy-ref.ts";

/** Some to start with; `usher placement status` lists all. */
const MOST_EXAMPLES = 10;

const LONGEST_REASON = 320;

const count = (text: string) => z.int().min(0).describe(text);

/** The drift of stored workloads, in the status of a policy. */
export const workloadsStatus = z.strictObject({
  current: count("Workloads with what the policy requires."),
  stale: count("Workloads with values of an earlier version of the policy."),
  orphaned: count("Workloads with values of the policy that it no longer selects."),
  missing: count("Workloads that the policy selects and that have none of its values."),
  examples: z
    .array(z.string().max(640))
    .max(MOST_EXAMPLES)
    .optional()
    .describe("Some workloads that are not current, for example: stale Deployment shop/web."),
  unread: z
    .array(z.string().max(LONGEST_REASON))
    .max(MOST_EXAMPLES)
    .optional()
    .describe("Resources that could not be read, with the reason. The counts cover the rest."),
});

interface Totals {
  readonly counts: Record<InjectionState, number>;
  examples: readonly string[];
}

/** The drift of stored workloads by policy, counted over one scan of the cluster. */
export class DriftCounts {
  readonly #policies = new Map<string, Totals>();
  readonly #unread: string[] = [];

  /** `name` as in `Deployment shop/web`. */
  note(name: string, carried: readonly Injection[]): void {
    for (const { policy, state } of carried) {
      const totals = this.#policies.get(policy) ?? { counts: none(), examples: [] };
      totals.counts[state]++;
      if (state !== "current")
        totals.examples = fairShare([...totals.examples, `${state} ${name}`], (one) => one, MOST_EXAMPLES);
      this.#policies.set(policy, totals);
    }
  }

  /** Why a resource could not be read. */
  noteUnread(why: string): void {
    if (this.#unread.length < MOST_EXAMPLES) this.#unread.push(why.slice(0, LONGEST_REASON));
  }

  /** For the status of a policy. */
  of(policy: string): JsonObject {
    const { counts, examples } = this.#policies.get(policy) ?? { counts: none(), examples: [] };
    const unread = this.#unread;
    return {
      ...counts,
      ...(examples.length === 0 ? {} : { examples }),
      ...(unread.length === 0 ? {} : { unread }),
    };
  }

  /** Over all policies, deleted ones included. */
  sums(): Record<InjectionState, number> {
    const sums = none();
    for (const { counts } of this.#policies.values())
      for (const state of DRIFT_STATES) sums[state] += counts[state];
    return sums;
  }

  /** The event about a policy whose drift has changed since the last scan. */
  event(policy: string, ref: PolicyRef, before: DriftCounts | undefined): EventToWrite | undefined {
    const was = before?.drifted(policy) ?? 0;
    const is = this.drifted(policy);
    if (was === is) return undefined;
    const { kind, namespace, name } = ref;
    const regarding = { kind, ...(namespace === undefined ? {} : { namespace }), name };
    if (is === 0) {
      const message = "all workloads are up to date with the policy";
      return { type: "Normal", reason: "WorkloadsCurrent", regarding, policy: ref, message };
    }
    const { counts, examples } = this.#policies.get(policy) ?? { counts: none(), examples: [] };
    const parts = DRIFT_STATES.filter((state) => state !== "current" && counts[state] > 0);
    const message = `workloads have drifted from the policy: ${parts.map((state) => `${counts[state]} ${state}`).join(", ")}, for example ${examples[0] ?? ""}; list them with usher placement status, update them with usher placement reapply (USHER-P40)`;
    return { type: "Warning", reason: "WorkloadsBehind", regarding, policy: ref, message };
  }

  /** How many workloads are not current. */
  drifted(policy: string): number {
    const counts = this.#policies.get(policy)?.counts;
    return counts === undefined ? 0 : counts.stale + counts.orphaned + counts.missing;
  }
}

function none(): Record<InjectionState, number> {
  return { current: 0, stale: 0, orphaned: 0, missing: 0 };
}
