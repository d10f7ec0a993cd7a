// Runs once before the tests of the project `cluster`, in vitest's own process.
import type { TestProject } from "vitest/node";
import { imageUnavailable } from "../container/programs.ts";
import { neededBy } from "./binaries/needed.ts";
import { clusterAvailable, ensureNeeded } from "./binaries.ts";
import { Broker } from "./broker.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** Why there can be no cluster here; empty where there can. */
    readonly clusterUnavailable: string;
    /** Where to ask for the shared cluster. */
    readonly clusterBroker: string;
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const answer = clusterAvailable();
  const reason = answer.available ? "" : answer.reason;
  try {
    if (answer.available) await ensureNeeded(neededBy(project.vitest.state.getPaths()));
  } catch (error) {
    // The tests that need the program fail, and only these.
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  }
  const broker = new Broker();
  await broker.listen();
  project.provide("clusterUnavailable", reason);
  project.provide("clusterBroker", broker.socket);
  return async () => {
    await broker.close();
    // After the summary, where it is seen.
    if (reason !== "") process.stdout.write(`\nNOT RUN: the tests that need a cluster. ${reason}\n`);
    const noImage = imageUnavailable();
    if (noImage !== "") process.stdout.write(`\nNOT RUN: the tests of the image. ${noImage}\n`);
  };
}
