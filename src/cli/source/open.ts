import type { Assembly } from "../../core/evaluate/assembly.ts";
import type { Source } from "../../core/view/source.ts";
import { readConfiguration } from "../configuration/configuration.ts";
import { CallError } from "../exit.ts";
import { createLog } from "../output/log.ts";
import type { Terminal } from "../output/terminal.ts";
import type { LiveOptions } from "./live.ts";
import { assembleFor, openSource } from "./source.ts";

export interface OpenOptions extends LiveOptions {
  readonly source?: string;
  readonly cluster?: boolean;
  readonly config?: string;
  readonly featureGates?: string;
}

/** What a command judges by, and then lets go of. */
export interface Opened {
  readonly source: Source;
  /** Something in it could not be used. */
  readonly faulty: boolean;
  readonly stop: () => Promise<void>;
}

/** Files and a live cluster exclude each other for all who only look. */
export function checkOneSource({ source, cluster }: OpenOptions): void {
  if (source !== undefined && cluster === true) {
    throw new CallError("--source is a cluster of files, --cluster a live one: choose one of them");
  }
}

export async function openFiles(options: OpenOptions, screen: Terminal): Promise<Opened> {
  const source = await openSource({ ...options, watch: false }, screen);
  const faulty = source.problems.some(({ severity }) => severity === "error");
  return { source, faulty, stop: source.stop };
}

export interface LiveLook {
  /** Looked at before anything is read. */
  readonly first?: (assembly: Assembly) => Promise<void>;
  /** Also read what only a leader needs. @default false */
  readonly asLeader?: boolean;
}

/** A live cluster, to look at and not to change. */
export async function openLive(options: OpenOptions, look: LiveLook = {}): Promise<Opened> {
  const assembly = assembleFor(options, await readConfiguration(options.config));
  await look.first?.(assembly);
  // Loaded only here: a cluster of files needs none of it.
  const { openLiveSource } = await import("./live.ts");
  const { source, stop } = await openLiveSource(
    { ...options, operate: false },
    assembly,
    createLog("error"),
    false,
  );
  try {
    if (look.asLeader === true) await source.cache.startLeading();
  } catch (error) {
    await stop();
    throw error;
  }
  return { source, faulty: false, stop };
}
