import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  isLeader,
  LEASE_TIMES,
  type LeaseRecord,
  type LeaseState,
  leaseRead,
  leaseStep,
  leaseTimeoutMs,
  leaseUncertain,
  leaseWait,
  leaseWritten,
  newLeaseState,
} from "./lease-state.ts";

function record(changes: Partial<LeaseRecord> = {}): LeaseRecord {
  return { resourceVersion: "7", holder: "other", durationMs: 15_000, transitions: 3, ...changes };
}

const fresh = newLeaseState("me");
const held = (sent: number): LeaseState => leaseWritten(fresh, record({ holder: "me" }), sent);

test("a holder leads for less than the lease duration, and may miss a renewal", () => {
  const { durationMs, renewMs, renewDeadlineMs, retryMs } = LEASE_TIMES;
  expect(renewDeadlineMs).toBeLessThan(durationMs);
  expect(renewMs + 2 * retryMs).toBeLessThan(renewDeadlineMs);
  // A renewal that hangs, and the pause after it, leave as much time again.
  expect(renewMs + 2 * leaseTimeoutMs(LEASE_TIMES)).toBeLessThanOrEqual(renewDeadlineMs);
  expect(1.25 * retryMs).toBeLessThanOrEqual(leaseTimeoutMs(LEASE_TIMES));
});

describe("the next step", () => {
  test("reads first", () => {
    expect(leaseStep(fresh, 0)).toEqual({ step: "read" });
  });

  test("creates a missing lease", () => {
    const step = { step: "write", resourceVersion: undefined, transitions: 0, acquires: true };
    expect(leaseStep(leaseRead(fresh, undefined, 0), 0)).toEqual(step);
  });

  test("leaves a deleted lease to its holder, which still leads, for as long as one that is not renewed", () => {
    const known = leaseRead(fresh, record(), 0);
    let state = leaseRead(known, undefined, 20_000);
    expect(leaseStep(state, 20_000)).toEqual({ step: "read" });
    expect(leaseWait(state, 34_600)).toBe(400);
    state = leaseRead(leaseUncertain(state), undefined, 21_000);
    state = leaseRead(state, undefined, 35_999);
    expect(leaseStep(state, 35_999)).toEqual({ step: "read" });
    state = leaseRead(state, undefined, 36_000);
    expect(leaseStep(state, 36_000)).toMatchObject({ step: "write", resourceVersion: undefined });
    // A creation that failed is repeated at once.
    state = leaseRead(leaseUncertain(state), undefined, 36_010);
    expect(leaseStep(state, 36_010)).toMatchObject({ step: "write", resourceVersion: undefined });
  });

  test("creates its own deleted lease at once, unless another candidate may have acquired it", () => {
    expect(leaseStep(leaseRead(held(0), undefined, 9_999), 9_999)).toMatchObject({ step: "write" });
    expect(leaseStep(leaseRead(held(0), undefined, 10_000), 10_000)).toEqual({ step: "read" });
  });

  test("waits while the holder renews, whatever times the Lease contains", () => {
    let state = leaseRead(fresh, record(), 0);
    for (let i = 1; i < 10; i++) {
      state = leaseRead(state, record({ resourceVersion: String(i) }), i * 14_000);
      expect(leaseStep(state, i * 14_000 + 13_999)).toEqual({ step: "read" });
    }
  });

  test("acquires a lease observed unchanged for its duration, not at the first read", () => {
    let state = leaseRead(fresh, record(), 1_000_000);
    expect(leaseStep(state, 1_000_000)).toEqual({ step: "read" });
    state = leaseRead(state, record(), 1_014_999);
    expect(leaseStep(state, 1_014_999)).toEqual({ step: "read" });
    const step = { step: "write", resourceVersion: "7", transitions: 4, acquires: true };
    expect(leaseStep(state, 1_015_000)).toEqual(step);
  });

  test("acquires a released lease immediately", () => {
    const step = { step: "write", resourceVersion: "7", transitions: 4, acquires: true };
    expect(leaseStep(leaseRead(fresh, record({ holder: "" }), 5), 5)).toEqual(step);
  });

  test("renews its own lease with the version of its last write", () => {
    const step = { step: "write", resourceVersion: "7", transitions: 3, acquires: false };
    expect(leaseStep(held(0), 5_000)).toEqual(step);
  });

  test("acquires the lease of a previous process with the same identity at once", () => {
    const state = leaseRead(fresh, record({ holder: "me" }), 0);
    expect(isLeader(state, 0)).toBe(false);
    expect(leaseStep(state, 0)).toMatchObject({ step: "write", acquires: true });
  });
});

describe("leading", () => {
  test("counts from when the renewal was sent, and ends before the lease expires", () => {
    expect(isLeader(held(1_000), 10_999)).toBe(true);
    expect(isLeader(held(1_000), 11_000)).toBe(false);
  });

  test("ends as soon as another holder is observed, or none", () => {
    expect(isLeader(leaseRead(held(0), record({ resourceVersion: "8" }), 10), 10)).toBe(false);
    expect(isLeader(leaseRead(held(0), undefined, 10), 10)).toBe(false);
  });

  test("continues after a write with unknown result, but only a write extends it", () => {
    let state = leaseUncertain(held(0));
    expect(leaseStep(state, 6_000)).toEqual({ step: "read" });
    state = leaseRead(state, record({ holder: "me" }), 6_000);
    expect(isLeader(state, 9_999)).toBe(true);
    expect(isLeader(state, 10_000)).toBe(false);
  });
});

test("waits until the renewal is due, and reads no later than the lease's expiry", () => {
  expect(leaseWait(held(1_000), 2_000)).toBe(4_000);
  expect(leaseWait(leaseRead(fresh, record(), 0), 100)).toBe(2_000);
  expect(leaseWait(leaseRead(fresh, record(), 0), 14_600)).toBe(400);
});

test("two candidates never lead at once, whatever is delayed, lost, stopped or deleted, and however their clocks are set", () => {
  // Mostly quick, otherwise candidates would rarely lead; sometimes longer than any of the times.
  const delay = fc.oneof({ weight: 6, arbitrary: fc.nat(200) }, { weight: 1, arbitrary: fc.nat(20_000) });
  const lost = fc.nat(9).map((chance) => chance === 0);
  const delays = fc.array(fc.record({ out: delay, back: delay, lost }), { minLength: 40, maxLength: 40 });
  const candidates = fc.array(fc.record({ clock: fc.nat(10_000_000), delays }), {
    minLength: 2,
    maxLength: 3,
  });
  // Not twice: between two deletions an unreachable candidate may miss the Lease of another one.
  const deletions = fc.array(fc.nat(100_000), { maxLength: 1 });
  fc.assert(
    fc.property(candidates, deletions, (list, deleted) => {
      let stored: LeaseRecord | undefined;
      let version = 0;
      let deletedAt = Number.NEGATIVE_INFINITY;
      const states = list.map((_, i) => newLeaseState(`c${i}`));
      const leading = (time: number) =>
        states.filter((state, i) => isLeader(state, time + (list[i]?.clock ?? 0))).length;
      const due: { at: number; run: (time: number) => void }[] = [];
      const begin = (i: number, time: number, turn: number): void => {
        const state = states[i];
        const { clock = 0, delays: own = [] } = list[i] ?? {};
        const delay = own[turn];
        if (state === undefined || delay === undefined) return;
        const step = leaseStep(state, time + clock);
        const sent = time + clock;
        let answer: ((now: number) => LeaseState) | undefined;
        // Arrives even after its timeout.
        due.push({
          at: time + delay.out,
          run: () => {
            if (step.step === "read") {
              const observed = stored;
              answer = (now) => leaseRead(states[i] ?? state, observed, now);
              // A creation that was under way during a deletion would make its sender a holder unnoticed.
            } else if (
              stored?.resourceVersion === step.resourceVersion &&
              (step.resourceVersion !== undefined || deletedAt < time)
            ) {
              const { transitions } = step;
              stored = {
                resourceVersion: String(++version),
                holder: `c${i}`,
                durationMs: 15_000,
                transitions,
              };
              const written = stored;
              answer = () => leaseWritten(states[i] ?? state, written, sent);
            } else answer = () => leaseUncertain(states[i] ?? state);
          },
        });
        const back = time + Math.min(delay.out + delay.back, leaseTimeoutMs(LEASE_TIMES));
        due.push({
          at: back,
          run: () => {
            const reported = back === time + delay.out + delay.back && !delay.lost ? answer : undefined;
            const next = reported?.(back + clock) ?? (step.step === "read" ? state : leaseUncertain(state));
            states[i] = next;
            const wait =
              reported === undefined ? Math.max(0, time + 2_000 - back) : leaseWait(next, back + clock);
            due.push({ at: back + wait, run: (now) => begin(i, now, turn + 1) });
          },
        });
      };
      for (const i of list.keys()) begin(i, i, 0);
      for (const at of deleted)
        due.push({
          at,
          run: () => {
            // A candidate that has not read the Lease does not know that there is a leader.
            const know = states.every(({ hasRival, heldSince }) => hasRival || heldSince !== undefined);
            if (!know) return;
            stored = undefined;
            deletedAt = at;
          },
        });
      while (due.length > 0) {
        due.sort((a, b) => a.at - b.at);
        const next = due.shift();
        next?.run(next.at);
        if (next !== undefined) expect(leading(next.at)).toBeLessThanOrEqual(1);
      }
      expect(version).toBeGreaterThan(0);
    }),
    { numRuns: 300 },
  );
});
