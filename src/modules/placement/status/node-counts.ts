import { isObject, type JsonObject } from "../../../core/json.ts";
import { nameOf, namespaceOf } from "../../../core/kubernetes/object.ts";
import type { View } from "../../../core/view/view.ts";
import { selectedNodes } from "../criteria/selected-nodes.ts";
import type { StatusKey } from "../reconciler.ts";

/** Nodes often join together, and each count is a write: a change is counted this long after the last count at the earliest. */
const GAP_MS = 30_000;

/** Policies in one step: with 5,000 nodes a step takes about 50 ms. */
const STEP = 100;

/** How many nodes each policy selected when its status was computed, and which policies select another number by now. */
export class NodeCounts {
  readonly #known = new Map<string, number | undefined>();
  #pending: StatusKey[] = [];
  #startedAt = Number.NEGATIVE_INFINITY;
  #isStale = false;

  record({ resource, namespace, name }: StatusKey, selected: number | undefined): void {
    this.#known.set(`${resource} ${namespace}/${name}`, selected);
  }

  /** A node was created, deleted, or has other labels or taints. */
  nodesChanged(): void {
    this.#isStale = true;
  }

  /**
   * One step of a count: the policies whose status is outdated, and the seconds until the next step. `elapsed`:
   * milliseconds of the monotonic clock.
   */
  step(
    resources: Iterable<string>,
    view: View,
    elapsed: number,
  ): { readonly outdated: readonly StatusKey[]; readonly requeueAfter?: number } {
    if (this.#pending.length === 0) {
      if (!this.#isStale) return { outdated: [] };
      const wait = this.#startedAt + GAP_MS - elapsed;
      if (wait > 0) return { outdated: [], requeueAfter: wait / 1_000 };
      this.#isStale = false;
      this.#startedAt = elapsed;
      this.#pending = [...resources].flatMap((resource) =>
        [...view.list(resource)].map((object) => keyOf(resource, object)),
      );
    }
    const outdated = this.#pending.splice(0, STEP).filter((key) => this.#isOutdated(key, view));
    return { outdated, ...(this.#pending.length > 0 || this.#isStale ? { requeueAfter: 0.1 } : {}) };
  }

  #isOutdated({ resource, namespace, name }: StatusKey, view: View): boolean {
    const spec = view.get(resource, namespace, name)?.["spec"];
    const selected = isObject(spec) ? selectedNodes(spec, view)?.selected : undefined;
    return selected !== this.#known.get(`${resource} ${namespace}/${name}`);
  }
}

export function keyOf(resource: string, object: JsonObject): StatusKey {
  return { kind: "status", resource, namespace: namespaceOf(object), name: nameOf(object) };
}
