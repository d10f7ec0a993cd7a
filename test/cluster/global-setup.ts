// Runs once before the tests of the project `cluster`, in vitest's own process.
import { copyFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { bundle } from "../../scripts/bundle.mjs";
import { imageUnavailable } from "../container/programs.ts";
import { neededBy } from "./binaries/needed.ts";
import { clusterAvailable, ensureNeeded } from "./binaries.ts";
import { Broker } from "./broker.ts";
import { makeDataFolder } from "./data-folder.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** Why this machine can't run a cluster; empty if it can. */
    readonly clusterUnavailable: string;
    /** The socket of the shared cluster's broker. */
    readonly clusterBroker: string;
    /** The program that an image holds; it starts in half the time. Absent where the clone's own is run. */
    readonly usherBundle?: string;
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
  const folder = makeDataFolder();
  // As in the package: it reads its version one folder up.
  await bundle(join(folder, "dist"));
  copyFileSync(new URL("../../package.json", import.meta.url), join(folder, "package.json"));
  const program = join(folder, "dist", "main.mjs");
  const broker = new Broker({ usher: ["node", program] });
  await broker.listen();
  project.provide("usherBundle", program);
  project.provide("clusterUnavailable", reason);
  project.provide("clusterBroker", broker.socket);
  return async () => {
    await broker.close();
    rmSync(folder, { recursive: true, force: true });
    // After the summary, where it is visible.
    if (reason !== "") process.stdout.write(`\nNOT RUN: the tests that need a cluster. ${reason}\n`);
    const noImage = imageUnavailable();
    if (noImage !== "") process.stdout.write(`\nNOT RUN: the tests of the image. ${noImage}\n`);
  };
}
