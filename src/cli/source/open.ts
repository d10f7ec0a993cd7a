import type { Assembly } from "../../core/evaluate/assembly.ts";
import type { Log } from "../../core/log.ts";
import type { Source } from "../../core/view/source.ts";
import { CallError } from "../exit.ts";
import type { Terminal } from "../output/terminal.ts";
import type { LiveOptions, LiveSource } from "./live.ts";
import type { ReadClusterOptions } from "./read-cluster.ts";
import { openSource } from "./source.ts";

export interface OpenOptions extends LiveOptions {
  readonly source?: string;
  readonly cluster?: boolean;
  readonly config?: string;
  readonly featureGates?: string;
}

/** What a command reads, and then stops. */
export interface Opened {
  readonly source: Source;
  /** Something in it could not be used. */
  readonly faulty: boolean;
  readonly stop: () => Promise<void>;
}

/** A command that only reads has one source. */
export function checkOneSource({ source, cluster }: OpenOptions): void {
  if (source !== undefined && cluster === true)
    throw new CallError("--source and --cluster are mutually exclusive");
}

/** A directory of files as the cluster. */
export async function openFiles(options: OpenOptions, assembly: Assembly, screen: Terminal): Promise<Opened> {
  const source = await openSource({ ...options, watch: false }, assembly, screen);
  const faulty = source.problems.some(({ severity }) => severity === "error");
  return { source, faulty, stop: source.stop };
}

/**
 * The cluster of a kubeconfig, or of the pod that this process runs in; resolves once it has been read. With `ownCertificate`, a replica
 * serves with a certificate that it manages.
 */
export async function openCluster(
  options: LiveOptions,
  assembly: Assembly,
  log: Log,
  ownCertificate = false,
): Promise<LiveSource> {
  // Loaded only here: commands on files do not need a client.
  const { openLiveSource } = await import("./live.ts");
  return openLiveSource(options, assembly, log, ownCertificate);
}

/** A live cluster, read-only. */
export async function openReadOnly(
  options: LiveOptions,
  assembly: Assembly,
  how: ReadClusterOptions,
): Promise<Opened> {
  const { readCluster } = await import("./read-cluster.ts");
  return readCluster(options, assembly, how);
}
