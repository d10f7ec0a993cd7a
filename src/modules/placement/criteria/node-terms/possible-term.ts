import type { WorkBudget } from "../../merge/work-budget.ts";
import type { Selector } from "./known-selector.ts";
import type { KnownTerm } from "./known-term.ts";
import { namesAgree, possible } from "./satisfiable.ts";

/** Whether any node whatever could meet a term beside the nodeSelector. */
export function could({ meaning }: KnownTerm, selector: Selector, budget: WorkBudget): boolean {
  if (meaning === undefined || selector === undefined) return false;
  budget.spend(Math.min(meaning.labels.size, selector.size));
  const few = meaning.labels.size < selector.size ? meaning.labels : selector;
  for (const key of few.keys()) {
    const said = meaning.labels.get(key);
    const value = selector.get(key);
    if (said === undefined || value === undefined) continue;
    budget.spend(said.requirements.length);
    if (!possible([{ key, operator: "In", values: new Set([value]) }, ...said.requirements])) return false;
  }
  return true;
}

/** Whether a term could be matched with a further pair in the nodeSelector, as far as that is about this pair. */
export function allows({ meaning }: KnownTerm, key: string, value: string, budget: WorkBudget): boolean {
  const said = meaning?.labels.get(key);
  budget.spend(4 + (said?.requirements.length ?? 0));
  return (
    said === undefined || possible([{ key, operator: "In", values: new Set([value]) }, ...said.requirements])
  );
}

/** Whether any node could meet both of two that could be matched beside the nodeSelector each: only labels that both speak of are looked at. */
export function together(a: KnownTerm, b: KnownTerm, budget: WorkBudget): boolean {
  if (a.meaning === undefined || b.meaning === undefined) return false;
  const [few, many] =
    a.meaning.labels.size < b.meaning.labels.size
      ? [a.meaning.labels, b.meaning.labels]
      : [b.meaning.labels, a.meaning.labels];
  budget.spend(2 + few.size);
  for (const [key, said] of few) {
    const other = many.get(key);
    if (other === undefined) continue;
    const all = [...said.requirements, ...other.requirements];
    const values = said.values + other.values;
    budget.spend(all.length + values);
    if (budget.exceeded || !possible(all)) return false;
  }
  const names = [...a.meaning.names, ...b.meaning.names];
  budget.spend(names.length);
  return names.length === 0 || namesAgree(names);
}
