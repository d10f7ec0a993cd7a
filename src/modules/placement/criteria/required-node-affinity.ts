import { at, canonical, isObject, type JsonObject, textOf } from "../../../core/json.ts";
import { nodeAffinity } from "../../../core/kubernetes/schemas.ts";
import { compileNodeSelector } from "../../../core/kubernetes/selectors/node-selector.ts";
import { pointer } from "../../../core/path.ts";
import { idle, PROBLEM, type Problem, problem } from "../../../core/policy/problem.ts";
import { type Criteria, type Criterion, MUTABLE_WHILE_GATED, wantedOf } from "./criterion.ts";
import { nodeSelector } from "./node-selector.ts";
import { impliesTerms } from "./node-terms/implies.ts";
import { mergeTerms } from "./node-terms/merge-terms.ts";
import {
  REQUIRED_NODE_AFFINITY,
  REQUIRED_TERMS,
  requiredTermsOf,
  termsMeaning,
  termsSizeOf,
  withoutTerms,
} from "./node-terms/node-terms.ts";
import { satisfiable } from "./node-terms/satisfiable.ts";
import { REQUIRED } from "./shape/affinity-lists.ts";
import { duplicates, storedForm } from "./shape/check-list.ts";

/**
 * Required node affinity
 *
 * Field:    spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution
 * Merge:    terms are alternatives: each of the pod's is combined with each of the policy's, so that both sides hold. Combinations that
 *           no node can match are left out; skipped where none remains (USHER-P11) or there are too many (USHER-P12).
 * Holds:    narrows only; idempotent; the meaning is order-independent except for which policy wins a conflict.
 * Update:   requirements may be appended to the terms of a gated pod; mutable on suspended Jobs and in templates.
 */
export const requiredNodeAffinity: Criterion<readonly JsonObject[]> = {
  name: "requiredNodeAffinity",
  rule: "affinity.nodeAffinity.required",
  text: "required node affinity",
  path: REQUIRED_NODE_AFFINITY,
  list: REQUIRED_TERMS,
  combined: true,
  judgedBy: ["nodeSelector"],
  // Terms that no node can match beside the nodeSelector mean nothing.
  listMeaning: (terms, podSpec) => {
    const selector = Object.entries(at(podSpec, "nodeSelector") ?? {}).map(
      ([key, value]) => [key, textOf(value)] as const,
    );
    const compiled = compileNodeSelector({ nodeSelectorTerms: terms }, []).terms;
    return termsMeaning(terms.filter((_, i) => satisfiable(compiled[i] ?? { kind: "broken" }, selector)));
  },
  kubelet: "checks",
  mutability: MUTABLE_WHILE_GATED,
  schema: nodeAffinity.shape[REQUIRED],
  parse,
  contradictions,
  warnings: (wanted, criteria) => [
    ...unmatchable(wanted, criteria),
    ...duplicates(wanted, ["spec", ...REQUIRED_TERMS], canonical),
  ],
  merge: mergeTerms,
  unmet: (podSpec, wanted, budget) => {
    const selector = at(podSpec, "nodeSelector");
    const terms = requiredTermsOf(podSpec);
    return impliesTerms(isObject(selector) ? selector : {}, terms, wanted, budget)
      ? []
      : [{ path: REQUIRED_NODE_AFFINITY, wants: "the policy's required node affinity" }];
  },
  injected: (origin, { spec, has }) => {
    const list = pointer([...spec, ...REQUIRED_TERMS]);
    const terms = origin.added[list]?.filter(isObject) ?? [];
    // Terms are alternatives: one that is there stands for all.
    return terms.some((term) => has.hasElement(list, term)) ? terms : undefined;
  },
  recorded: (terms, spec) => ({ set: [], added: { [pointer([...spec, ...REQUIRED_TERMS])]: terms } }),
  // Terms are alternatives: with one more or one less all of them mean something else.
  outdated: (terms, wanted = []) => {
    const now = new Set(wanted.map(canonical));
    return now.size === terms.length && terms.every((term) => now.has(canonical(term))) ? undefined : terms;
  },
  without: (present, injected) =>
    Array.isArray(present) && termsSizeOf(present) === "readable"
      ? withoutTerms(present, injected.flat())
      : present,
};

function parse(spec: JsonObject, problems: Problem[]): readonly JsonObject[] | undefined {
  const value = at(spec, ...REQUIRED_NODE_AFFINITY);
  for (const { path, message } of compileNodeSelector(value, ["spec", ...REQUIRED_NODE_AFFINITY]).problems)
    problems.push(problem(path, message));
  const list = at(value, "nodeSelectorTerms");
  return Array.isArray(list) ? storedForm(list) : undefined;
}

/** No node could ever be found for a pod with such terms. */
function contradictions(wanted: readonly JsonObject[], criteria: Criteria): Problem[] {
  const possible = possibleTerms(wanted, criteria);
  if (!possible.includes(false) || possible.includes(true)) return [];
  const beside =
    wantedOf(criteria, nodeSelector) === undefined ? "" : " together with the policy's nodeSelector";
  return [
    problem(
      ["spec", ...REQUIRED_TERMS],
      `no node can match any of the terms${beside}: they contradict themselves`,
    ),
  ];
}

/** One of the terms must match: one that can't has no effect and does no harm beside others. */
function unmatchable(wanted: readonly JsonObject[], criteria: Criteria): Problem[] {
  const terms = possibleTerms(wanted, criteria);
  if (terms.length > 0 && terms.every((possible) => possible === undefined))
    return [
      idle(
        PROBLEM.matchesNothing,
        ["spec", ...REQUIRED_TERMS],
        "all terms are empty and match no node: nothing is added, and with spec.enforcement no object meets the policy",
      ),
    ];
  return terms.flatMap((possible, i) => {
    if (possible === true) return [];
    const why = possible === undefined ? "is empty" : "contradicts itself";
    return [
      idle(
        PROBLEM.matchesNothing,
        ["spec", ...REQUIRED_TERMS, i],
        `${why} and matches no node; it is left out`,
      ),
    ];
  });
}

/** Of each term, whether some node could match it together with the nodeSelector; `undefined` of an empty one. */
function possibleTerms(wanted: readonly JsonObject[], criteria: Criteria): (boolean | undefined)[] {
  const { terms } = compileNodeSelector({ nodeSelectorTerms: wanted }, []);
  const selector = wantedOf(criteria, nodeSelector) ?? [];
  return terms.map((term) => (term.kind === "usable" ? satisfiable(term, selector) : undefined));
}
