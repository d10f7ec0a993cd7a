import type { AggregatedApi } from "../../admission/admission-server.ts";
import type { AcceptsToken } from "../../admission/review/routes.ts";
import type { LivePair } from "../../admission/tls/certificate.ts";
import type { CertificateFiles } from "../../admission/tls/certificate-files.ts";
import type { Count } from "../../core/decision/decision.ts";
import { resourceName } from "../../core/decision/request.ts";
import type { Effects } from "../../core/evaluate/effects.ts";
import type { Source } from "../../core/evaluate/source.ts";
import type { Log } from "../../core/log.ts";
import type { Assembly } from "../../core/module/assembly.ts";
import { readsOf } from "../../core/module/module.ts";
import type { ControllerStats } from "../../core/module/reconciler.ts";
import { kindResource } from "../../core/policy/kind.ts";
import { countOf } from "../../files/source/report.ts";
import type { Terminal } from "../output/terminal.ts";
import { type OpenOptions, openCluster } from "../source/open.ts";
import { openSource } from "../source/source.ts";

/** The source of a server, and its companions. */
export interface Served {
  readonly source: Source;
  /** `4 policies, 6 nodes, 3 namespaces` */
  readonly inventory: string;
  readonly from: string;
  readonly certificate: LivePair | undefined;
  readonly effects: ((effects: Effects) => void) | undefined;
  /** Whether the ops port reports decisions. @default false */
  readonly reportsDecisions?: boolean;
  /** Whether API servers accept a chain of certificates. @default they do */
  readonly trusts?: ((chain: string) => boolean | undefined) | undefined;
  /** Whether usher may write for a call with this path segment. @default for every call */
  readonly acceptsToken?: AcceptsToken | undefined;
  /** Called if a client got no answer. */
  readonly callFailed?: (() => void) | undefined;
  /** The aggregated API beside webhooks. @default none */
  readonly aggregated?: AggregatedApi | undefined;
  readonly controllerStats?: (() => ControllerStats) | undefined;
  /** Called once the server is listening. */
  readonly start: (count: (counts: readonly Count[]) => void) => void;
  readonly stop: () => Promise<void>;
}

/** Opens the source of `serve`: files, a cluster, or both. */
export async function openServed(
  options: OpenOptions,
  assembly: Assembly,
  screen: Terminal,
  log: Log,
  files: CertificateFiles | undefined,
): Promise<Served> {
  if (options.source === undefined) {
    const live = await openCluster(options, assembly, log, { files });
    return {
      ...live,
      inventory: inventoryOf(assembly, countsOf(assembly)),
      from: live.server,
    };
  }
  const readOnly = { certificate: undefined, effects: undefined, start: () => undefined };
  if (options.cluster === true) {
    // Loaded only here: files alone need no client.
    const { compose } = await import("../source/composed.ts");
    const { source, live, stop } = await compose(options.source, assembly, {
      files: async (share) => {
        const files = await openSource({ ...options, watch: true }, share, screen);
        return { source: files, stop: files.stop };
      },
      live: (share, owns) => openCluster({ ...options, operate: false, owns }, share, log),
      note: screen.note,
    });
    const from = `${options.source.join(" and ")} and ${live.server}`;
    const inventory = inventoryOf(assembly, countsOf(assembly));
    return { ...readOnly, source, stop, from, inventory };
  }
  const source = await openSource({ ...options, watch: true }, assembly, screen);
  return {
    ...readOnly,
    source,
    inventory: inventoryOf(assembly, new Map(Object.entries(source.summary.objects))),
    from: options.source.join(" and "),
    reportsDecisions: true,
    stop: source.stop,
  };
}

function countsOf(assembly: Assembly): Map<string, number> {
  const resources = [
    // Leader-only resources are not read yet; optional ones do not belong to the inventory.
    ...readsOf(assembly)
      .filter(({ leaderOnly, optional }) => leaderOnly !== true && optional !== true)
      .map(resourceName),
    ...assembly.modules.flatMap(({ kinds }) => kinds.map(kindResource)),
  ];
  return new Map(resources.map((resource) => [resource, assembly.view.count(resource)]));
}

/** Policies together, the rest by resource. */
function inventoryOf({ modules }: Assembly, counts: ReadonlyMap<string, number>): string {
  const kinds = modules.flatMap((module) => module.kinds).filter(({ standing }) => standing === "resource");
  const policies = new Set(kinds.map(kindResource));
  const total = [...policies].reduce((sum, resource) => sum + (counts.get(resource) ?? 0), 0);
  const others = [...counts].filter(([resource]) => !policies.has(resource));
  return [countOf(total, ""), ...others.map(([resource, n]) => countOf(n, resource))].join(", ");
}
