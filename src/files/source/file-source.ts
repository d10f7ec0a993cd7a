import type { Source } from "../../core/evaluate/source.ts";
import type { JsonObject } from "../../core/json.ts";
import type { Assembly } from "../../core/module/assembly.ts";
import { kindResource } from "../../core/policy/kind.ts";
import { Catalog } from "./catalog.ts";
import { FileSet } from "./file-set.ts";
import type { FileProblem, FileReport } from "./report.ts";
import { namespaceIn, Resources } from "./resources.ts";
import { Watch } from "./watch.ts";

export interface FileSourceOptions {
  /** A directory, including its subdirectories, or a single file; or several of them. */
  readonly directory: string | readonly string[];
  readonly assembly: Assembly;
  /** Called for every file that changed or is invalid, also while the source is opened. */
  readonly report: (report: FileReport) => void;
  /** Whether to follow changes. @default true */
  readonly watch?: boolean;
  /** Called while opening with the number of documents read; the total grows as files turn out to hold several. */
  readonly progress?: (done: number, total: number, file: string) => void;
}

export interface FileSummary {
  readonly policies: number;
  /** The number of objects of each resource, `nodes` or `deployments.apps`, policies included. */
  readonly objects: Readonly<Record<string, number>>;
  readonly files: number;
}

/** A directory as the cluster. */
export interface FileSource extends Source {
  /** The current problems. */
  readonly problems: readonly FileProblem[];
  readonly summary: FileSummary;
  readonly find: (
    apiVersion: string,
    kind: string,
    namespace: string | undefined,
    name: string,
  ) => JsonObject | undefined;
  /** Scans the files now; resolves when all changes are in force. */
  readonly refresh: () => Promise<void>;
}

/**
 * Opens a directory of YAML and JSON as a cluster. It is complete when the promise resolves; only an unreadable
 * directory rejects it.
 */
export async function openFiles(options: FileSourceOptions): Promise<FileSource> {
  const { assembly } = options;
  const resources = new Resources(assembly.modules, assembly.installation.workloads.all);
  const ownGroups = [
    ...assembly.modules.flatMap(({ kinds, stateKinds = [] }) =>
      [...kinds, ...stateKinds].map((one) => one.group),
    ),
    ...assembly.installation.workloads.all.map(({ group }) => group),
  ];
  const catalog = new Catalog(ownGroups, [options.directory].flat());
  // A source of files has every kind of policy, if perhaps no policy of it. Other resources that modules read exist
  // only as far as they are in the files: without nodes in them, nodes are unknown.
  for (const { kinds } of assembly.modules) for (const kind of kinds) assembly.serve(kindResource(kind));
  const files = new FileSet({ ...options, resources, catalog });
  await files.open();
  const watch = new Watch(async () => {
    try {
      await files.refresh("stable");
    } catch (error) {
      // No content of a file leads here. If something does, serving must continue.
      const reason = error instanceof Error ? error.message : String(error);
      const text = `${[options.directory].flat().join(", ")}: could not be read: ${reason}; still serving what was read before`;
      options.report({ level: "error", file: "", text, problems: [] });
    }
    if (files.unstable) watch.nudge();
    return files.directories;
  });
  if (options.watch !== false) watch.start(files.directories);

  return {
    assembly,
    ready: true,
    get problems() {
      return files.problems;
    },
    get summary() {
      const objects = catalog.counts();
      let policies = 0;
      for (const { kinds } of assembly.modules) {
        for (const kind of kinds)
          if (kind.standing === "resource") policies += objects[kindResource(kind)] ?? 0;
      }
      return { policies, objects, files: files.count };
    },
    find: (apiVersion, kind, namespace, name) => {
      const resource = resources.of(apiVersion, kind);
      const metadata = namespace === undefined ? {} : { namespace };
      return catalog.get(resource.name, namespaceIn(resource, { metadata }), name);
    },
    refresh: () => files.refresh("now"),
    fetch: async (needs) => needs.map((need) => catalog.answer(need)),
    commit: async (commit) => {
      const { result, changes } = catalog.commit(commit);
      assembly.apply(changes);
      return result;
    },
    stop: async () => {
      watch.stop();
      await files.idle();
    },
  };
}
