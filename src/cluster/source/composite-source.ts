import { Assembly } from "../../core/evaluate/assembly.ts";
import type { Fact, Need } from "../../core/evaluate/need.ts";
import type { ServerVersion } from "../../core/kubernetes/versions.ts";
import type { Source } from "../../core/view/source.ts";
import type { Change } from "../../core/view/view.ts";

/** Which resources a source answers for. */
export type Owns = (resource: string) => boolean;

export interface Part {
  readonly source: Source;
  readonly owns: Owns;
}

/**
 * The same assembly for one of several sources: what the source does not own it can't change. What it knows and what it decides is
 * that of the whole.
 */
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

/** An assembly to open a source with that is to be a part of another. */
export function shareOf(assembly: Assembly, owns: Owns): Assembly {
  return new Share(assembly, owns);
}

/**
 * Several sources as one, such as policies from files and nodes from a cluster. Each was opened with its share of the assembly. What
 * none owns belongs to the last, as does every question about access.
 */
export function composeSources(assembly: Assembly, parts: readonly [Part, ...Part[]]): Source {
  const sources = parts.map(({ source }) => source);
  const last = (parts.at(-1) ?? parts[0]).source;
  const ownerOf = (resource: string): Source => parts.find(({ owns }) => owns(resource))?.source ?? last;
  return {
    assembly,
    get ready() {
      return sources.every(({ ready }) => ready);
    },
    fetch: async (needs, deadline) => {
      const facts: Fact[] = needs.map(() => ({ failed: "the source returned no fact" }));
      const places = Map.groupBy(needs.keys(), (place) => ownerOfNeed(needs[place], ownerOf, last));
      const asked = [...places].map(async ([owner, theirs]) => {
        const answers = await owner.fetch(
          theirs.flatMap((place) => needs[place] ?? []),
          deadline,
        );
        for (const [i, answer] of answers.entries()) facts[theirs[i] ?? -1] = answer;
      });
      await Promise.all(asked);
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
