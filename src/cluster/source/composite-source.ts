import type { Fact, Need } from "../../core/decision/need.ts";
import type { Source } from "../../core/evaluate/source.ts";
import type { ServerVersion } from "../../core/kubernetes/versions.ts";
import { Assembly } from "../../core/module/assembly.ts";
import type { Change } from "../../core/view/view.ts";

/** Which resources a source provides. */
export type Owns = (resource: string) => boolean;

export interface ComposedSource {
  readonly source: Source;
  readonly owns: Owns;
}

/** The shared assembly as one of several sources sees it: only changes of the source's own resources reach it. */
class Share extends Assembly {
  readonly #whole: Assembly;
  readonly #owns: Owns;

  constructor(whole: Assembly, owns: Owns) {
    super(whole.modules, whole.installation, whole.gates);
    this.#whole = whole;
    this.#owns = owns;
  }

  override get view() {
    return this.#whole.view;
  }

  override get hooks() {
    return this.#whole.hooks;
  }

  override evaluator(module: string) {
    return this.#whole.evaluator(module);
  }

  override policies(module: string) {
    return this.#whole.policies(module);
  }

  override wants(resource: string): boolean {
    return this.#owns(resource) && this.#whole.wants(resource);
  }

  override serve(resource: string): void {
    if (this.#owns(resource)) this.#whole.serve(resource);
  }

  override observeServerVersion(version: ServerVersion): boolean {
    return this.#whole.observeServerVersion(version);
  }

  override apply(changes: readonly Change[]): Change[] {
    return this.#whole.apply(changes.filter(({ resource }) => this.#owns(resource)));
  }

  override with(changes: readonly Change[]): Assembly {
    return this.#whole.with(changes);
  }
}

/** The assembly for opening one of several sources. */
export function shareOf(assembly: Assembly, owns: Owns): Assembly {
  return new Share(assembly, owns);
}

/**
 * Several sources as one, such as policies from files and nodes from a cluster. Each was opened with its share of the
 * assembly. The last one provides resources that no other provides, and access reviews.
 */
export function composeSources(
  assembly: Assembly,
  parts: readonly [ComposedSource, ...ComposedSource[]],
): Source {
  const sources = parts.map(({ source }) => source);
  const last = (parts.at(-1) ?? parts[0]).source;
  const ownerOf = (resource: string): Source => parts.find(({ owns }) => owns(resource))?.source ?? last;
  return {
    assembly,
    get ready() {
      return sources.every(({ ready }) => ready);
    },
    ages: () => sources.flatMap((source) => source.ages?.() ?? []),
    cuts: () => sources.flatMap((source) => source.cuts?.() ?? []),
    fetch: async (needs, deadline) => {
      const facts: Fact[] = needs.map(() => ({ failed: "the source returned no fact" }));
      const byOwner = Map.groupBy(needs.keys(), (place) => ownerOfNeed(needs[place], ownerOf, last));
      const fetched = [...byOwner].map(async ([owner, indexes]) => {
        const found = await owner.fetch(
          indexes.flatMap((place) => needs[place] ?? []),
          deadline,
        );
        for (const [i, fact] of found.entries()) facts[indexes[i] ?? -1] = fact;
      });
      await Promise.all(fetched);
      return facts;
    },
    commit: (commit, deadline) => ownerOf(commit.resource).commit(commit, deadline),
    stop: async () => {
      await Promise.all(sources.map((source) => source.stop()));
    },
  };
}

function ownerOfNeed(
  need: Need | undefined,
  ownerOf: (resource: string) => Source,
  otherwise: Source,
): Source {
  if (need === undefined) return otherwise;
  if ("get" in need) return ownerOf(need.get.resource);
  return "list" in need ? ownerOf(need.list.resource) : otherwise;
}
