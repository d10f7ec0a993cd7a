import type { NeedMore } from "../../core/evaluate/decision.ts";
import { MAX_ROUNDS } from "../../core/evaluate/evaluate.ts";
import { Facts } from "../../core/evaluate/need.ts";
import type { ReconcileResult } from "../../core/module/reconciler.ts";
import type { FetchNeeds } from "../source/fetch-needs.ts";

/** For all needs of one round. No request waits for it, so it may be generous. */
const FETCH_MS = 30_000;

/** Reconciles one key, fetches what it needs, and reconciles it again: as often as an evaluation may, then it throws. */
export async function reconcileWithFacts(
  fetch: FetchNeeds,
  reconcile: (facts: Facts) => ReconcileResult | NeedMore,
): Promise<ReconcileResult> {
  const facts = new Facts();
  for (let round = 1; round <= MAX_ROUNDS; round++) {
    // In the last round what is missing has failed, as in an evaluation.
    if (round === MAX_ROUNDS) facts.close("too many rounds of questions");
    const result = reconcile(facts);
    if (!("need" in result)) return result;
    if (round < MAX_ROUNDS) await fetchInto(facts, fetch, result.need);
  }
  throw new Error(`needs more facts after ${MAX_ROUNDS} rounds`);
}

async function fetchInto(facts: Facts, fetch: FetchNeeds, needs: Parameters<FetchNeeds>[0]): Promise<void> {
  const ended = new AbortController();
  const until = performance.now() + FETCH_MS;
  const timer = setTimeout(() => ended.abort(), FETCH_MS);
  try {
    const remaining = () => until - performance.now();
    const found = await fetch(needs, { signal: ended.signal, remaining });
    for (const [i, need] of needs.entries()) facts.set(need, found[i] ?? { failed: "no answer" });
  } finally {
    clearTimeout(timer);
    ended.abort();
  }
}
