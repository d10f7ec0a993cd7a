import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { filtersOf, type KubernetesRelease } from "../../src/core/scheduling/releases.ts";
import { prepareWorld } from "../../src/core/scheduling/scheduling.ts";
import { oracleVerdicts, ownVerdicts } from "./compare.ts";
import { Oracle } from "./oracle.ts";
import { type Case, cases } from "./worlds.ts";

/** `npm run test:long` runs more worlds, other ones each time; the releases share them. */
const LONG_RUNS = process.env["USHER_SCHEDULING_RUNS"];
const RUNS = Number(LONG_RUNS ?? 3_000);
/** The same worlds on every machine: a rare difference is found by the long run, not by the change of someone else. */
const WORLDS = LONG_RUNS === undefined ? { seed: 20_261_118 } : {};
const oracles = Object.entries(inject("schedulerOracles"));

describe.skipIf(inject("oracleUnavailable") !== "")("the filters of kube-scheduler", () => {
  describe.each(oracles)("%s", (release, path) => {
    let oracle: Oracle;
    beforeAll(() => {
      oracle = new Oracle(path);
    });
    afterAll(() => oracle.close());

    test(
      "decide for every node of random worlds as core/scheduling does: node, plugin and reason",
      async () => {
        const seen = new Set<string>();
        await fc.assert(
          fc.asyncProperty(cases, async (one) => {
            expect(await judgedBoth(one, oracle, release as KubernetesRelease, seen)).toEqual([]);
          }),
          { ...WORLDS, numRuns: Math.ceil(RUNS / oracles.length) },
        );
        // The worlds reach every simulated filter.
        const filters = filtersOf(release as KubernetesRelease).map(({ name }) => name);
        const reached = filters.filter((name) => !NOT_SIMULATED.has(name));
        expect([...seen].sort()).toEqual(expect.arrayContaining(reached));
      },
      60 * 60_000,
    );
  });
});

/** Their verdict is unknown or absent, for which the oracle has no plugin. */
const NOT_SIMULATED: ReadonlySet<string> = new Set(["Scheduler", "DynamicResources"]);

/** Deliberately unsimulated edge cases. */
const OPEN: ReadonlySet<string> = new Set([
  "unknown VolumeBinding: several claims of the pod could bind the same volumes",
  "unknown NodeVolumeLimits: in-tree volumes are translated to those of a CSI driver, whose limit is not known",
]);

/**
 * The candidates on which the two disagree. Beside those edge cases a verdict may be unknown only where the scheduler
 * itself fails.
 */
async function judgedBoth(
  { world, candidates }: Case,
  oracle: Oracle,
  release: KubernetesRelease,
  seen: Set<string>,
): Promise<readonly unknown[]> {
  const { pods } = await oracle.judge(candidates, world);
  const prepared = prepareWorld({ ...world, release });
  const differences: unknown[] = [];
  for (const [i, pod] of candidates.entries()) {
    const ours = ownVerdicts(pod, prepared);
    const theirs = oracleVerdicts(pods[i] ?? {}, prepared.nodes.names);
    for (const [node, said] of Object.entries(ours)) {
      seen.add(said.split(/[ :]/)[0] ?? "");
      const failed = theirs[node] === "error" && said.startsWith("unknown");
      if (said !== theirs[node] && !failed && !OPEN.has(said))
        differences.push({ pod: i, node, ours: said, theirs: theirs[node] });
    }
    if (Object.keys(ours).length !== Object.keys(theirs).length) differences.push({ ours, theirs });
  }
  return differences;
}
