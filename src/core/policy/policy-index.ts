import type { JsonObject } from "../json.ts";
import { type RequiredLabel, SelectorIndex } from "./selector-index.ts";

interface Indexed {
  readonly ref: { readonly namespace?: string };
  readonly requiredLabels: readonly RequiredLabel[];
}

/**
 * This few policies of a namespace are tried one by one: an index for each of ten thousand namespaces would take more
 * memory than it saves.
 */
const MAX_UNINDEXED = 16;

/**
 * Finds the policies that may select an object: those of the cluster by labels, those of a namespace by the namespace
 * first and then by labels. Policies of one namespace cost other namespaces nothing, and do not affect the index of
 * cluster policies.
 */
export class PolicyIndex<Item extends Indexed> {
  readonly #cluster: SelectorIndex<Item>;
  readonly #namespaces = new Map<string, Set<Item> | SelectorIndex<Item>>();

  constructor(items: readonly Item[]) {
    this.#cluster = new SelectorIndex(items.filter(({ ref }) => ref.namespace === undefined));
    const namespaced = Map.groupBy(
      items.filter(({ ref }) => ref.namespace !== undefined),
      ({ ref }) => ref.namespace ?? "",
    );
    for (const [namespace, list] of namespaced)
      this.#namespaces.set(namespace, list.length > MAX_UNINDEXED ? new SelectorIndex(list) : new Set(list));
  }

  add(item: Item): void {
    const { namespace } = item.ref;
    if (namespace === undefined) {
      this.#cluster.add(item);
      return;
    }
    const known = this.#namespaces.get(namespace);
    if (known === undefined) this.#namespaces.set(namespace, new Set([item]));
    else {
      known.add(item);
      if (known instanceof Set && known.size > MAX_UNINDEXED)
        this.#namespaces.set(namespace, new SelectorIndex([...known]));
    }
  }

  remove(item: Item): void {
    const { namespace } = item.ref;
    if (namespace === undefined) {
      this.#cluster.remove(item);
      return;
    }
    const known = this.#namespaces.get(namespace);
    if (known instanceof Set) known.delete(item);
    else known?.remove(item);
    if (known?.size === 0) this.#namespaces.delete(namespace);
  }

  /** Every item in the index. */
  get items(): Iterable<Item> {
    return this.#all();
  }

  *#all(): Iterable<Item> {
    yield* this.#cluster.items;
    for (const known of this.#namespaces.values()) yield* itemsOf(known);
  }

  /**
   * Every item that may select an object of a namespace with these labels, each once. If the labels of the namespace
   * are unknown, all cluster items that are indexed by them are candidates.
   */
  candidates(
    namespace: string,
    labels: Readonly<Record<string, JsonObject | undefined>>,
    isNamespaceKnown: boolean,
  ): readonly Item[] {
    const found = this.#cluster.candidates(labels);
    const ofCluster = isNamespaceKnown
      ? found
      : // Some found by name are indexed by namespace anyway.
        [...new Set([...found, ...this.#cluster.anchoredOn("namespace")])];
    const known = this.#namespaces.get(namespace);
    if (known === undefined) return ofCluster;
    return [...ofCluster, ...(known instanceof Set ? known : known.candidates(labels))];
  }
}

function itemsOf<Item extends Indexed>(known: Set<Item> | SelectorIndex<Item>): Iterable<Item> {
  return known instanceof Set ? known : known.items;
}
