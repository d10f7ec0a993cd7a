import { composeSources, type Owns, shareOf } from "../../cluster/source/composite-source.ts";
import type { Assembly } from "../../core/evaluate/assembly.ts";
import type { Log } from "../../core/log.ts";
import { type Kind, kindResource } from "../../core/policy/kind.ts";
import type { Source } from "../../core/view/source.ts";
import { countOf } from "../../files/source/report.ts";
import type { Terminal } from "../output/terminal.ts";
import type { ApiServerOptions } from "./api-server.ts";
import { openCluster } from "./open.ts";
import { openSource, type SourceOptions } from "./source.ts";

export interface Composed {
  readonly source: Source;
  /** `policies/ and https://10.0.0.1:6443` */
  readonly from: string;
  readonly stop: () => Promise<void>;
}

/**
 * Policies and configuration from files, all else from a live cluster, which need not know usher's kinds. A module that is
 * configured by a file and has no policies of a kind there has those of the cluster. Nothing is changed in the cluster.
 */
export async function openComposed(
  options: Pick<SourceOptions, "source"> & ApiServerOptions,
  assembly: Assembly,
  screen: Terminal,
  log: Log,
): Promise<Composed> {
  const kinds = new Set(assembly.modules.flatMap((module) => module.kinds.map(kindResource)));
  const policies: Owns = (resource) => kinds.has(resource);
  const others: Owns = (resource) => !policies(resource);
  const files = await openSource({ ...options, watch: true }, shareOf(assembly, policies), screen);
  for (const kind of liveKinds(assembly, files.summary.objects)) kinds.delete(kind);
  try {
    const { kubeconfig, context } = options;
    const live = await openCluster(
      {
        operate: false,
        owns: others,
        ...(kubeconfig === undefined ? {} : { kubeconfig }),
        ...(context === undefined ? {} : { context }),
      },
      shareOf(assembly, others),
      log,
    );
    const unused = Object.entries(files.summary.objects).filter(([resource]) => others(resource));
    if (unused.length > 0) {
      const what = unused.map(([resource, count]) => countOf(count, resource)).join(", ");
      screen.note(`${options.source}: ${what} not used: only policies are read from files`);
    }
    return {
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
    // Open watches would keep the process running.
    await files.stop();
    throw error;
  }
}

/** The policies of the cluster that stand beside configuration from files. */
function liveKinds({ modules }: Assembly, objects: Readonly<Record<string, number>>): string[] {
  const count = (kind: Kind): number => objects[kindResource(kind)] ?? 0;
  return modules
    .filter(({ kinds }) => kinds.some((kind) => kind.configuration !== undefined && count(kind) > 0))
    .flatMap(({ kinds }) => kinds.filter((kind) => kind.standing === "resource" && count(kind) === 0))
    .map(kindResource);
}
