import fc from "fast-check";
import { expect, test } from "vitest";
import { anyCriteria, anyTerm } from "../../../../../test/builders/criteria.ts";
import { term } from "../../../../../test/builders/merged.ts";
import type { JsonObject } from "../../../../core/json.ts";
import { compileTerm } from "../../../../core/kubernetes/selectors/node-selector.ts";
import { WorkBudget } from "../../merge/work-budget.ts";
import { combination, has, ParsedTerms } from "./parsed-term.ts";
import { areCompatible, isSatisfiable } from "./possible-term.ts";
import { satisfiable } from "./satisfiable.ts";

const known = (one: JsonObject) => new ParsedTerms().own(one, new WorkBudget());
const free = () => new WorkBudget(Number.POSITIVE_INFINITY);
/** An empty term matches no node, and is never put together with another. */
const anyUsable = anyTerm.filter((one) => Object.keys(one).length > 0);
const anySelector = anyCriteria.map(({ nodeSelector }) => nodeSelector);

test("two terms go together where a node could meet what they come to", () => {
  const seen = new Set<boolean>();
  fc.assert(
    fc.property(anyUsable, anyUsable, anySelector, (a, b, pairs) => {
      const selector = new Map(pairs);
      const [first, second] = [known(a), known(b)];
      const possible =
        isSatisfiable(first, selector, free()) &&
        isSatisfiable(second, selector, free()) &&
        areCompatible(first, second, free());
      const both = combination(first, second);
      expect(possible).toBe(satisfiable(compileTerm(both.term, [], []), pairs));
      seen.add(possible);
      if (!possible) return;
      // What was put together is what would be read from it.
      const read = known(both.term as JsonObject);
      expect(both.requirements).toEqual(read.requirements);
      expect([both.size, both.weight, both.texts]).toEqual([read.size, read.weight, read.texts]);
      expect(both.meaning).toEqual(read.meaning);
      expect(has(both, first, free()) && has(both, second, free())).toBe(true);
    }),
    { numRuns: 500 },
  );
  expect(seen.size).toBe(2);
});

test("a term of a policy costs the same each time, one of the object is read once", () => {
  const one = term("zone=a|b", "disk=ssd");
  const left = (read: (terms: ParsedTerms, budget: WorkBudget) => unknown) => {
    const [terms, budget] = [new ParsedTerms(), new WorkBudget(12)];
    read(terms, budget);
    read(terms, budget);
    return !budget.exceeded;
  };
  expect(left((terms, budget) => terms.own(one, budget))).toBe(true);
  expect(left((terms, budget) => terms.wanted(one, budget))).toBe(true);
  const [terms, budget] = [new ParsedTerms(), new WorkBudget(11)];
  terms.wanted(one, budget);
  expect(budget.exceeded).toBe(false);
  terms.wanted(one, budget);
  expect(budget.exceeded).toBe(true);
});
