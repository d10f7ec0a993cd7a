import { describe, expect, test } from "vitest";
import { type Absence, beginAbsence, LONGEST_GAP_MS, observe, type ReplicaObservation } from "./absence.ts";

const GAP = LONGEST_GAP_MS;

/** `r`: ready, `-`: none is, with the version of the endpoints behind it. */
type Step = readonly [at: number, seen: string];

function seen([at, what]: Step): ReplicaObservation {
  return { at, ready: what.startsWith("r"), version: what.slice(1) };
}

function observedMs(first: Step, ...steps: readonly Step[]): number {
  let absence: Absence = beginAbsence(seen(first));
  for (const step of steps) absence = observe(absence, seen(step));
  return absence.observedMs;
}

describe("the time without a ready replica", () => {
  test.each<[string, number, [Step, ...Step[]]]>([
    ["is zero at the first look", 0, [[5_000, "-a"]]],
    [
      "counts from the first look without one",
      3_000,
      [
        [0, "ra"],
        [5_000, "-b"],
        [8_000, "-b"],
      ],
    ],
    [
      "does not count the time before that look",
      0,
      [
        [0, "ra"],
        [5_000, "-b"],
      ],
    ],
    [
      "adds up",
      9_000,
      [
        [0, "-a"],
        [2_000, "-a"],
        [9_000, "-a"],
      ],
    ],
    [
      "adds up while endpoints change",
      9_000,
      [
        [0, "-a"],
        [2_000, "-b"],
        [9_000, "-c"],
      ],
    ],
    [
      "ends with a ready replica",
      0,
      [
        [0, "-a"],
        [9_000, "-a"],
        [10_000, "rb"],
      ],
    ],
    [
      "starts again after it",
      1_000,
      [
        [0, "-a"],
        [9_000, "rb"],
        [10_000, "-c"],
        [11_000, "-c"],
      ],
    ],
    [
      "counts without any slice",
      4_000,
      [
        [0, "-"],
        [4_000, "-"],
      ],
    ],
    [
      "counts the longest gap",
      GAP,
      [
        [0, "-a"],
        [GAP, "-a"],
      ],
    ],
    [
      "does not count a longer one",
      0,
      [
        [0, "-a"],
        [GAP + 1, "-a"],
      ],
    ],
    [
      "keeps the earlier time if no endpoint changed",
      3_000,
      [
        [0, "-a"],
        [2_000, "-a"],
        [99_000, "-a"],
        [100_000, "-a"],
      ],
    ],
    [
      "keeps nothing if one did: a replica may have been ready",
      0,
      [
        [0, "-a"],
        [2_000, "-a"],
        [99_000, "-b"],
      ],
    ],
    [
      "keeps nothing if there is no slice to compare",
      0,
      [
        [0, "-"],
        [2_000, "-"],
        [99_000, "-"],
      ],
    ],
    [
      "never decreases with the clock",
      2_000,
      [
        [0, "-a"],
        [2_000, "-a"],
        [1_000, "-a"],
      ],
    ],
  ])("%s", (_, expected, [first, ...steps]) => {
    expect(observedMs(first, ...steps)).toBe(expected);
  });

  test.each<[string, number, Step, string]>([
    ["continues if no endpoint has changed since", 90_000, [7, "-a"], "a"],
    ["starts again if one has", 0, [7, "-b"], "a"],
    ["starts again if there is no slice to compare", 0, [7, "-"], ""],
    ["is over with a ready replica", 0, [7, "ra"], "a"],
  ])("after a restart it %s", (_, expected, first, version) => {
    expect(beginAbsence(seen(first), { observedMs: 90_000, version }).observedMs).toBe(expected);
  });

  test("restarts alone never increase it, and any look between them does", () => {
    let record = { observedMs: 0, version: "a" };
    const restarts = (looks: number) => {
      for (let i = 0; i < 10; i++) {
        let absence = beginAbsence({ at: i * 1_000_000, ready: false, version: "a" }, record);
        for (let look = 1; look <= looks; look++)
          absence = observe(absence, { at: i * 1_000_000 + look * 2_000, ready: false, version: "a" });
        record = { observedMs: absence.observedMs, version: "a" };
      }
      return record.observedMs;
    };
    expect(restarts(0)).toBe(0);
    expect(restarts(3)).toBe(60_000);
  });
});
