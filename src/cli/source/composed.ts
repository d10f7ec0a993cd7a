import { composeSources, type Owns, shareOf } from "../../cluster/source/composite-source.ts";
import type { Source } from "../../core/evaluate/source.ts";
import type { Assembly } from "../../core/module/assembly.ts";
import { type Kind, kindResource } from "../../core/policy/kind.ts";
import type { FileSource } from "../../files/source/file-source.ts";
import { countOf } from "../../files/source/report.ts";

/** How both sides are opened, each with its share of the assembly. */
interface Sides<Files, Live> {
  readonly files: (share: Assembly) => Promise<Files>;
  readonly live: (share: Assembly, owns: Owns) => Promise<Live>;
  readonly note: (text: string) => void;
}

interface Side<S extends Source> {
  readonly source: S;
  readonly stop: () => Promise<void>;
}

/**
 * Policies and configuration from files, everything else from a live cluster, which need not have usher's kinds. If
 * files configure a module but have no policies of a kind, the cluster's are used. Nothing is changed in the cluster.
 */
export async function compose<Files extends Side<FileSource>, Live extends Side<Source>>(
  named: readonly string[],
  assembly: Assembly,
  { files: openFiles, live: openLive, note }: Sides<Files, Live>,
): Promise<Side<Source> & { readonly files: Files; readonly live: Live }> {
  const kinds = new Set(assembly.modules.flatMap((module) => module.kinds.map(kindResource)));
  const policies: Owns = (resource) => kinds.has(resource);
  const others: Owns = (resource) => !policies(resource);
  const files = await openFiles(shareOf(assembly, policies));
  const { objects } = files.source.summary;
  for (const kind of liveKinds(assembly, objects)) kinds.delete(kind);
  try {
    const live = await openLive(shareOf(assembly, others), others);
    const unused = Object.entries(objects).filter(([resource]) => others(resource));
    if (unused.length > 0) {
      const what = unused.map(([resource, count]) => countOf(count, resource)).join(", ");
      note(`${named.join(" and ")}: ${what} not used: only policies are read from files`);
    }
    return {
      source: composeSources(assembly, [
        { source: files.source, owns: policies },
        { source: live.source, owns: others },
      ]),
      files,
      live,
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

/** The policies of the cluster that are used beside configuration from files. */
function liveKinds({ modules }: Assembly, objects: Readonly<Record<string, number>>): string[] {
  const count = (kind: Kind): number => objects[kindResource(kind)] ?? 0;
  return modules
    .filter(({ kinds }) => kinds.some((kind) => kind.configuration !== undefined && count(kind) > 0))
    .flatMap(({ kinds }) => kinds.filter((kind) => kind.standing === "resource" && count(kind) === 0))
    .map(kindResource);
}
