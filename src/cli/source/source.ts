import { existsSync } from "node:fs";
import { Assembly } from "../../core/evaluate/assembly.ts";
import { policyCheck } from "../../core/policy/policy-check.ts";
import { type FileSource, openFiles } from "../../files/source/file-source.ts";
import { modules } from "../../modules/index.ts";
import { type Configuration, configure, readConfiguration } from "../configuration/configuration.ts";
import { CallError } from "../exit.ts";
import type { Terminal } from "../output/terminal.ts";

export interface SourceOptions {
  readonly source?: string;
  readonly watch: boolean;
  readonly config?: string;
  readonly featureGates?: string;
}

/** Every module, and the one that judges policies themselves. */
export const allModules = [...modules, policyCheck(modules)];

/** An assembly as the flags of a command and its configuration say. */
export function assembleFor(
  options: Pick<SourceOptions, "featureGates">,
  configuration: Configuration = {},
): Assembly {
  const { installation, gates } = configure(allModules, configuration, options.featureGates);
  return new Assembly(allModules, installation, gates);
}

/** Opens a cluster of files and tells the person what is wrong in it. */
export async function openSource(
  options: SourceOptions,
  screen: Terminal,
  given?: Assembly,
): Promise<FileSource> {
  const { source: directory } = options;
  if (directory === undefined) {
    throw new CallError(
      "--source is needed: the directory of files that is the cluster; or --cluster for a live one",
    );
  }
  if (!existsSync(directory)) {
    throw new CallError(`--source ${directory}: there is no such file or directory`);
  }
  const assembly = given ?? assembleFor(options, await readConfiguration(options.config));
  const source = await openFiles({
    directory,
    assembly,
    watch: options.watch,
    report: ({ text, level }) => (level === "error" ? screen.complain(text) : screen.note(text)),
    progress: (done, total) => screen.progress("reading", "documents", done, total),
  }).catch((error: unknown) => {
    // By its contract this is about the directory itself: one that can't be looked into.
    throw new CallError(`--source ${error instanceof Error ? error.message : String(error)}`);
  });
  screen.endProgress();
  return source;
}
