import { isObject, type Json, own } from "../../../../core/json.ts";
import type { WorkBudget } from "../../merge/work-budget.ts";
import type { ParsedTerm } from "./parsed-term.ts";
import { namesAgree, possible } from "./satisfiable.ts";

/** Whether any node whatever could meet a term beside the nodeSelector. */
export function isSatisfiable({ meaning }: ParsedTerm, selector: Selector, budget: WorkBudget): boolean {
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
export function admitsLabel(
  { meaning }: ParsedTerm,
  key: string,
  value: string,
  budget: WorkBudget,
): boolean {
  const said = meaning?.labels.get(key);
  budget.spend(4 + (said?.requirements.length ?? 0));
  return (
    said === undefined || possible([{ key, operator: "In", values: new Set([value]) }, ...said.requirements])
  );
}

/** Whether any node could meet both of two that could be matched beside the nodeSelector each: only labels that both speak of are looked at. */
export function areCompatible(a: ParsedTerm, b: ParsedTerm, budget: WorkBudget): boolean {
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

/** A nodeSelector as terms are judged beside it; nothing where what is written there can match no node. */
export type Selector =
  | {
      /** How many keys it had when it was read. */
      readonly size: number;
      readonly get: (key: string) => string | undefined;
      readonly keys: () => Iterable<string>;
    }
  | undefined;

/** Reads each value once, to see that all are texts, and copies none: a pod may have a hundred thousand. */
export function selectorIn(written: Json | undefined): Selector {
  if (written === undefined || written === null) return { size: 0, get: () => undefined, keys: () => [] };
  if (!isObject(written)) return undefined;
  let size = 0;
  for (const key in written) {
    const value = written[key];
    if (value === undefined || value === null) continue;
    if (typeof value !== "string") return undefined;
    size++;
  }
  return {
    size,
    get: (key) => {
      const value = own(written, key);
      return typeof value === "string" ? value : undefined;
    },
    keys: () => Object.keys(written),
  };
}
