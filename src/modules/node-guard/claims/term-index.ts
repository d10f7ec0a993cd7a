import type { JsonObject } from "../../../core/json.ts";
import { labelValue } from "../../../core/kubernetes/selectors/label-selector.ts";
import type { NodeTerm } from "../../../core/kubernetes/selectors/node-selector.ts";

type UsableTerm = Extract<NodeTerm, { readonly kind: "usable" }>;

const NONE: readonly UsableTerm[] = [];

/** The terms of one pod by a value that they require, so that a node is compared with few of many. Made in time linear in the terms. */
export class TermIndex {
  readonly #byName = new Map<string, UsableTerm[]>();
  readonly #byLabel = new Map<string, Map<string, UsableTerm[]>>();
  readonly #others: UsableTerm[] = [];

  constructor(terms: readonly UsableTerm[]) {
    for (const term of terms) this.#add(term);
  }

  /** Lists that have every term which matches a node of this name and with these labels. */
  *candidates(name: string, labels: JsonObject | undefined): Iterable<readonly UsableTerm[]> {
    if (this.#byName.size > 0) yield this.#byName.get(name) ?? NONE;
    for (const [key, byValue] of this.#byLabel) {
      const value = labelValue(labels, key);
      yield value === undefined ? NONE : (byValue.get(value) ?? NONE);
    }
    yield this.#others;
  }

  #add(term: UsableTerm): void {
    const named = term.names.find(({ operator }) => operator === "In");
    if (named !== undefined) {
      put(this.#byName, named.name, term);
      return;
    }
    for (const requirement of term.labels) {
      if (requirement.operator !== "In") continue;
      const byValue = this.#byLabel.get(requirement.key) ?? new Map<string, UsableTerm[]>();
      this.#byLabel.set(requirement.key, byValue);
      for (const value of requirement.values) put(byValue, value, term);
      return;
    }
    this.#others.push(term);
  }
}

function put(map: Map<string, UsableTerm[]>, key: string, term: UsableTerm): void {
  const terms = map.get(key);
  if (terms === undefined) map.set(key, [term]);
  else terms.push(term);
}
