import type { LivePair } from "../../admission/tls/certificate.ts";
import type { Assembly } from "../../core/evaluate/assembly.ts";
import type { Effects } from "../../core/evaluate/effects.ts";
import { resourceName } from "../../core/evaluate/request.ts";
import type { Count } from "../../core/module/metric.ts";
import type { ControllerStats } from "../../core/module/reconciler.ts";
import { kindResource } from "../../core/policy/kind.ts";
import type { Source } from "../../core/view/source.ts";
import { releaseMemory } from "../../files/source/release-memory.ts";
import { countOf } from "../../files/source/report.ts";
import { readConfiguration } from "../configuration/configuration.ts";
import type { createLog } from "../output/log.ts";
import type { Terminal } from "../output/terminal.ts";
import type { LiveOptions } from "../source/live.ts";
import { assembleFor, openSource } from "../source/source.ts";

export interface ServedOptions extends LiveOptions {
  /** A directory of files in place of a cluster. */
  readonly source?: string;
  /** A live cluster; beside files, for all but the policies. */
  readonly cluster?: boolean;
  readonly config?: string;
  readonly featureGates?: string;
}

/** What is served from, and what belongs to it. */
export interface Opened {
  readonly source: Source;
  /** `4 policies, 6 nodes, 3 namespaces` */
  readonly inventory: string;
  readonly from: string;
  readonly certificate: LivePair | undefined;
  readonly effects: ((effects: Effects) => void) | undefined;
  readonly controllerStats?: (() => ControllerStats) | undefined;
  /** To be called when all is read and before anybody is served. */
  readonly settle: () => void;
  /** To be called once it answers. */
  readonly start: (count: (counts: readonly Count[]) => void) => void;
  readonly stop: () => Promise<void>;
}

/** Opens what a call of `serve` names: files, a cluster, or both. */
export async function openServed(
  options: ServedOptions,
  screen: Terminal,
  log: ReturnType<typeof createLog>,
  ownCertificate: boolean,
): Promise<Opened> {
  if (options.source === undefined) return openTheCluster(options, log, ownCertificate);
  if (options.cluster !== true) return openTheFiles(options, screen);
  // Loaded only here: files alone need none of it.
  const { openComposed } = await import("../source/composed.ts");
  const { assembly, ...composed } = await openComposed(options, screen, log);
  return {
    ...composed,
    inventory: inventoryOf(assembly, countsOf(assembly)),
    certificate: undefined,
    effects: undefined,
    settle: releaseMemory,
    start: () => undefined,
  };
}

async function openTheFiles(options: ServedOptions, screen: Terminal): Promise<Opened> {
  const source = await openSource({ ...options, watch: true }, screen);
  return {
    source,
    inventory: inventoryOf(source.assembly, new Map(Object.entries(source.summary.objects))),
    from: options.source ?? "",
    certificate: undefined,
    effects: undefined,
    // A source of files has done that itself.
    settle: () => undefined,
    start: () => undefined,
    stop: source.stop,
  };
}

async function openTheCluster(
  options: ServedOptions,
  log: ReturnType<typeof createLog>,
  ownCertificate: boolean,
): Promise<Opened> {
  const assembly = assembleFor(options, await readConfiguration(options.config));
  // Loaded only here: a cluster of files needs none of it.
  const { openLiveSource } = await import("../source/live.ts");
  const live = await openLiveSource(options, assembly, log, ownCertificate);
  return {
    ...live,
    inventory: inventoryOf(assembly, countsOf(assembly)),
    from: live.server,
    settle: releaseMemory,
  };
}

function countsOf({ modules, view }: Assembly): Map<string, number> {
  const resources = modules.flatMap(({ reads, kinds }) => [
    // What only a leader reads is not read yet, and what may not be there is nobody's inventory.
    ...reads.filter(({ leaderOnly, optional }) => leaderOnly !== true && optional !== true).map(resourceName),
    ...kinds.map(kindResource),
  ]);
  return new Map(resources.map((resource) => [resource, view.count(resource)]));
}

/** Policies together, the rest by resource. */
function inventoryOf({ modules }: Assembly, counts: ReadonlyMap<string, number>): string {
  const kinds = modules.flatMap((module) => module.kinds).filter(({ standing }) => standing === "resource");
  const policies = new Set(kinds.map(kindResource));
  const total = [...policies].reduce((sum, resource) => sum + (counts.get(resource) ?? 0), 0);
  const others = [...counts].filter(([resource]) => !policies.has(resource));
  return [countOf(total, ""), ...others.map(([resource, n]) => countOf(n, resource))].join(", ");
}
