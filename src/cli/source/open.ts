import type { Source } from "../../core/evaluate/source.ts";
import type { Log } from "../../core/log.ts";
import type { Assembly } from "../../core/module/assembly.ts";
import { kindResource } from "../../core/policy/kind.ts";
import { PROBLEM } from "../../core/policy/problem.ts";
import type { FileSource } from "../../files/source/file-source.ts";
import type { FileProblem } from "../../files/source/report.ts";
import type { Terminal } from "../output/terminal.ts";
import type { LiveOptions, LiveSource, ServingOptions } from "./live.ts";
import type { ReadClusterOptions } from "./read-cluster.ts";
import { openSource } from "./source.ts";

export interface OpenOptions extends LiveOptions {
  readonly source?: readonly string[];
  readonly cluster?: boolean;
  readonly config?: string;
  readonly featureGates?: string;
  readonly kubernetesVersion?: string;
  readonly strict?: boolean;
}

/** The source of a command, to be stopped afterwards. */
export interface Opened {
  readonly source: Source;
  /** Something in it could not be used, or with `--strict` is probably a mistake. */
  readonly faulty: boolean;
  /** Problems of files; a cluster has none. */
  readonly problems: readonly FileProblem[];
  readonly stop: () => Promise<void>;
}

/** Whether a cluster is read: wholly, or with `--source` everything but policies. */
export function isLive({ source, cluster }: Pick<OpenOptions, "source" | "cluster">): boolean {
  return source === undefined || cluster === true;
}

/** How a command reads. */
export interface ReadOptions extends Omit<ReadClusterOptions, "note" | "owns"> {
  /** Files need not have policies. */
  readonly objectsOnly?: boolean;
}

/** The source of a command: a cluster, files in its place, or policies of files on a cluster. */
export async function openRead(
  options: OpenOptions,
  assembly: Assembly,
  screen: Terminal,
  { objectsOnly = false, ...how }: ReadOptions = {},
): Promise<Opened> {
  const { note } = screen;
  if (options.source === undefined) return openReadOnly(options, assembly, { ...how, note });
  if (!isLive(options)) return openFiles(options, assembly, screen, objectsOnly);
  // Loaded only here: files alone need no client.
  const { compose } = await import("./composed.ts");
  const { source, files, stop } = await compose(options.source, assembly, {
    files: (share) => openFiles(options, share, screen, objectsOnly),
    live: (share, owns) => openReadOnly(options, share, { ...how, note, owns }),
    note,
  });
  return { source, faulty: files.faulty, problems: files.problems, stop };
}

/** A directory of files as the cluster. */
async function openFiles(
  options: OpenOptions,
  assembly: Assembly,
  screen: Terminal,
  objectsOnly: boolean,
): Promise<Opened & { readonly source: FileSource }> {
  const source = await openSource({ ...options, watch: false }, assembly, screen);
  const problems = [...source.problems, ...(objectsOnly ? [] : emptySource(options, source))];
  for (const { file, message } of problems.slice(source.problems.length))
    (options.strict ? screen.complain : screen.note)(`${file}: ${message}`);
  const mistakes = options.strict ? problems.filter(({ strict }) => strict).length : 0;
  if (mistakes > 0)
    screen.complain(
      `--strict: ${mistakes === 1 ? "1 warning is an error" : `${mistakes} warnings are errors`}`,
    );
  const faulty = mistakes > 0 || problems.some(({ severity }) => severity === "error");
  return { source, faulty, problems, stop: source.stop };
}

/** Without a policy every review passes, so the directory is probably the wrong one. */
function emptySource({ source = [] }: OpenOptions, { assembly, summary }: FileSource): FileProblem[] {
  const kinds = assembly.modules.flatMap((module) => module.kinds.map(kindResource));
  if (kinds.length === 0 || kinds.some((resource) => (summary.objects[resource] ?? 0) > 0)) return [];
  const message = "no policies found: nothing is changed or denied by a policy";
  return [
    {
      file: source.join(", "),
      line: 0,
      column: 0,
      message,
      severity: "warning",
      strict: true,
      frame: "",
      code: PROBLEM.noEffect,
    },
  ];
}

/**
 * The cluster of a kubeconfig, or of this process's pod; resolves once it has been read. With `serving`, a replica
 * serves with a certificate: that of the files, or one that it issues.
 */
export async function openCluster(
  options: LiveOptions,
  assembly: Assembly,
  log: Log,
  serving?: ServingOptions,
): Promise<LiveSource> {
  // Loaded only here: commands on files do not need a client.
  const { openLiveSource } = await import("./live.ts");
  return openLiveSource(options, assembly, log, serving);
}

/** A live cluster, read-only. */
async function openReadOnly(
  options: LiveOptions,
  assembly: Assembly,
  how: ReadClusterOptions,
): Promise<Opened> {
  const { readCluster } = await import("./read-cluster.ts");
  return readCluster(options, assembly, how);
}
