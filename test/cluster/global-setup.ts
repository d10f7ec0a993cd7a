// Runs once before the tests of the project `cluster`, in vitest's own process.
import type { TestProject } from "vitest/node";
import { imageUnavailable } from "../container/programs.ts";
import { neededBy } from "./binaries/needed.ts";
import { clusterAvailable, ensureNeeded } from "./binaries.ts";
import { Broker } from "./broker.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** Why this machine can't run a cluster; empty if it can. */
    readonly clusterUnavailable: string;
    /** The socket of the shared cluster's broker. */
    readonly clusterBroker: string;
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const answer = clusterAvailable();
  const reason = answer.available ? "" : answer.reason;
  try {
    if (answer.available) await ensureNeeded(neededBy(project.vitest.state.getPaths()));
  } catch (error) {
    // Only the tests that need the program fail.
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  }
  const broker = new Broker();
  await broker.listen();
  project.provide("clusterUnavailable", reason);
  project.provide("clusterBroker", broker.socket);
  return async () => {
    await broker.close();
    // After the summary, where it is visible.
    if (reason !== "") process.stdout.write(`\nNOT RUN: the tests that need a cluster. ${reason}\n`);
    const noImage = imageUnavailable();
    if (noImage !== "") process.stdout.write(`\nNOT RUN: the tests of the image. ${noImage}\n`);
  };
}
