import { composeSources, type Owns, shareOf } from "../../cluster/source/composite-source.ts";
import type { Assembly } from "../../core/evaluate/assembly.ts";
import { kindResource } from "../../core/policy/kind.ts";
import type { Source } from "../../core/view/source.ts";
import { countOf } from "../../files/source/report.ts";
import { readConfiguration } from "../configuration/configuration.ts";
import type { createLog } from "../output/log.ts";
import type { Terminal } from "../output/terminal.ts";
import type { ApiServerOptions } from "./api-server.ts";
import { openLiveSource } from "./live.ts";
import { assembleFor, openSource, type SourceOptions } from "./source.ts";

export interface Composed {
  readonly assembly: Assembly;
  readonly source: Source;
  /** `policies/ and https://10.0.0.1:6443` */
  readonly from: string;
  readonly stop: () => Promise<void>;
}

/** Policies from files, all else from a live cluster, which need not know usher's kinds. In the cluster nothing is changed. */
export async function openComposed(
  options: Omit<SourceOptions, "watch"> & ApiServerOptions,
  screen: Terminal,
  log: ReturnType<typeof createLog>,
): Promise<Composed> {
  const assembly = assembleFor(options, await readConfiguration(options.config));
  const kinds = new Set(assembly.modules.flatMap((module) => module.kinds.map(kindResource)));
  const policies: Owns = (resource) => kinds.has(resource);
  const others: Owns = (resource) => !policies(resource);
  const files = await openSource({ ...options, watch: true }, screen, shareOf(assembly, policies));
  try {
    const { kubeconfig, context } = options;
    const live = await openLiveSource(
      {
        operate: false,
        owns: others,
        ...(kubeconfig === undefined ? {} : { kubeconfig }),
        ...(context === undefined ? {} : { context }),
      },
      shareOf(assembly, others),
      log,
      false,
    );
    const unused = Object.entries(files.summary.objects).filter(([resource]) => others(resource));
    if (unused.length > 0) {
      const what = unused.map(([resource, count]) => countOf(count, resource)).join(", ");
      screen.note(`${options.source}: ${what} not used: beside policies, the cluster's count`);
    }
    return {
      assembly,
      source: composeSources(assembly, [
        { source: files, owns: policies },
        { source: live.source, owns: others },
      ]),
      from: `${options.source} and ${live.server}`,
      stop: async () => {
        await files.stop();
        await live.stop();
      },
    };
  } catch (error) {
    // What still watches would keep the process from ending.
    await files.stop();
    throw error;
  }
}
