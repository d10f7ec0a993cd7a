// Builds the oracle once before the tests of the project `oracle`, in vitest's own process, which shows the progress.
import type { TestProject } from "vitest/node";
import { ensureSchedulerOracle, oracleUnavailable } from "../cluster/binaries.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** The path of the oracle by release. */
    readonly schedulerOracles: Readonly<Record<string, string>>;
    /** Why this machine can't have an oracle; empty if it can. */
    readonly oracleUnavailable: string;
  }
}

const NEWEST = "1.37";
/** `npm run test:long` compares with every release, `npm test` with the newest. */
const RELEASES =
  process.env["USHER_LONG"] === undefined ? [NEWEST] : ["1.33", "1.34", "1.35", "1.36", NEWEST];

export default async function setup(project: TestProject): Promise<() => void> {
  const reason = oracleUnavailable(RELEASES.map(named));
  const oracles: Record<string, string> = {};
  if (reason === "")
    for (const release of RELEASES) oracles[release] = await ensureSchedulerOracle(named(release));
  project.provide("schedulerOracles", oracles);
  project.provide("oracleUnavailable", reason);
  return () => {
    if (reason !== "")
      process.stdout.write(`\nNOT RUN: the comparison with kube-scheduler's filters. ${reason}\n`);
  };
}

/** The newest release has no name among the recipes. */
function named(release: string): string {
  return release === NEWEST ? "" : release;
}
