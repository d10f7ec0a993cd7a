import {
  at,
  canonical,
  isObject,
  type Json,
  type JsonObject,
  listAt,
  own,
  stringAt,
} from "../../../core/json.ts";
import { celString, celValue } from "../../../core/kubernetes/cel.ts";
import { MAX_REQUIRED_TERMS } from "../../../core/kubernetes/schemas/bounds.ts";
import { nodeAffinity } from "../../../core/kubernetes/schemas.ts";
import { parseInt64 } from "../../../core/kubernetes/selectors/integer.ts";
import {
  impliedBy,
  impliesName,
  type LabelRequirement,
} from "../../../core/kubernetes/selectors/node-requirements.ts";
import { compileNodeSelector } from "../../../core/kubernetes/selectors/node-selector.ts";
import { LISTS, requirementsOf, withoutTerms } from "../../../core/kubernetes/selectors/node-terms.ts";
import { valuesOf } from "../../../core/kubernetes/selectors/values.ts";
import { type Path, pointer } from "../../../core/path.ts";
import { idle, PROBLEM, type Problem, problem } from "../../../core/policy/problem.ts";
import {
  type CelCheck,
  type CompiledCriterion,
  fieldOf,
  isAdded,
  LARGE,
  patch,
  placeOf,
  type Variable,
} from "./cel.ts";
import { REQUIRED } from "./check-elements.ts";
import { injectionText, type MergeContext } from "./context.ts";
import { type Criteria, type Criterion, MUTABLE_WHILE_GATED, wantedOf } from "./criterion.ts";
import { duplicates, storedForm } from "./list-criterion.ts";
import { nodeSelector, selectorAfter } from "./node-selector.ts";
import {
  areCompatible,
  combination,
  describeTerms,
  hasAll,
  isMatchable,
  MAX_REQUIREMENTS,
  type ParsedTerm,
  parseTerm,
  REQUIRED_NODE_AFFINITY,
  REQUIRED_TERMS,
  type Selector,
  sizeOfParsed,
  sizeOfTerms,
  type TermMeaning,
  valuesOfTerm,
} from "./node-term.ts";
import { couldMatch, EXPRESSIONS, FIELDS, judgingCost, matchable, SELECTOR, TERMS } from "./node-term-cel.ts";
import type { Report } from "./report.ts";
import { type ComparedPod, requirementsIn } from "./unmet.ts";
import { sizeOf, type WorkLimit, workOfProduct } from "./work-limit.ts";

const RULE = "affinity.nodeAffinity.required";
const HOLDER = "requiredNodeAffinity";

/** As many terms as a policy may have: the scheduler tries them one by one for each node, and each policy multiplies them. */
const MAX_TERMS = MAX_REQUIRED_TERMS;

/**
 * Required node affinity
 *
 * Field:    spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution
 * Merge:    terms are alternatives: each of the pod's is combined with each of the policy's, so that both sides hold. Combinations that
 *           no node can match are left out; skipped where none remains (USHER-P11) or there are too many (USHER-P12).
 * Holds:    narrows only; idempotent; the meaning is order-independent except for which policy wins a conflict.
 * Update:   requirements may be appended to the terms of a gated pod; mutable on suspended Jobs and in templates.
 */
export const requiredNodeAffinity: Criterion<readonly JsonObject[], readonly ParsedTerm[]> = {
  name: "requiredNodeAffinity",
  rule: RULE,
  text: "required node affinity",
  path: REQUIRED_NODE_AFFINITY,
  list: REQUIRED_TERMS,
  combined: true,
  judgedBy: ["nodeSelector"],
  // Terms that no node can match with the nodeSelector have no meaning.
  listMeaning: (terms, podSpec) => {
    const selector = new Map(
      Object.entries(at(podSpec, "nodeSelector") ?? {}).map(([key, value]) => [key, String(value)]),
    );
    return termsMeaning(terms.filter((term) => isMatchable(parseTerm(term), selector)));
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
  sizeOf: (terms) =>
    sizeOf(
      1,
      terms.reduce((sum, term) => sum + valuesOfTerm(term), 0),
      { terms: terms.length },
    ),
  prepare: (terms) => terms.map(parseTerm),
  merge: mergeTerms,
  unmet: (pod, wanted, limit) =>
    isWithin(pod, wanted, limit)
      ? []
      : [{ path: REQUIRED_NODE_AFFINITY, wants: "the policy's required node affinity" }],
  compile,
  firstCounts: "for nodes",
  injected: (origin, { spec, has }) => {
    const list = pointer([...spec, ...REQUIRED_TERMS]);
    const terms = origin.added[list]?.filter(isObject) ?? [];
    // Terms are alternatives: one that is present represents all.
    return terms.some((term) => has.hasElement(list, term)) ? terms : undefined;
  },
  recorded: (terms, spec) => ({ set: [], added: { [pointer([...spec, ...REQUIRED_TERMS])]: terms } }),
  // Terms are alternatives: one more or less changes the meaning of all.
  outdated: (terms, wanted = []) => {
    const now = new Set(wanted.map(canonical));
    return now.size === terms.length && terms.every((term) => now.has(canonical(term))) ? undefined : terms;
  },
  without: (present, injected) =>
    Array.isArray(present) && typeof sizeOfTerms(present) !== "string"
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

/** One of the terms must match: an impossible one has no effect beside others. */
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
  const selector = new Map(wantedOf(criteria, nodeSelector) ?? []);
  return compileNodeSelector({ nodeSelectorTerms: wanted }, []).terms.map(({ kind }, i) =>
    kind === "usable" ? isMatchable(parseTerm(wanted[i] ?? null), selector) : undefined,
  );
}

/**
 * Combines each term of the pod with each of the policy, the pod's requirements first. A term that has all requirements of one of the
 * policy's is kept: so applying it twice changes nothing further. Terms that match no node by themselves are kept, too: nothing can
 * narrow them.
 *
 * A combination that no node can match, nodeSelector included, is left out while another remains. If none does, or a gated pod would have
 * to gain or lose a term, the policy's terms are skipped together.
 */
function mergeTerms(target: MergeContext, wanted: readonly ParsedTerm[], report: Report): void {
  const { draft, spec, terms: parsed } = target;
  const path = [...spec, ...REQUIRED_TERMS];
  const podSpec = at(draft.object, ...spec);
  const present = at(podSpec, ...REQUIRED_NODE_AFFINITY);
  const list = at(present, "nodeSelectorTerms") ?? [];
  const absent = present === undefined || present === null;
  const size = Array.isArray(list) ? parsed.sizeOf(list) : "unreadable";
  if (!Array.isArray(list) || size === "unreadable" || !(absent || isObject(present))) {
    report.unwritable(path, `${RULE} is not a list of terms here`);
    return;
  }
  if (size === "too large") {
    reportSkipped(report, path, "too large");
    return;
  }
  const selector = parsed.selector(podSpec);
  const appendOnly = target.limits.appendOnly === true && !report.restoring;
  const product = absent
    ? alone(wanted, selector)
    : productOf(
        list.map((term) => parsed.of(term)),
        wanted,
        selector,
        appendOnly,
        target.limit,
      );
  const all = wanted.map(({ term }) => term).filter(isObject);
  if (product.kind === "same") report.same(path, describe(all), all);
  else if (product.kind !== "terms") reportSkipped(report, path, product.kind);
  else if (!report.immutable(path)) write(target, all, report, path, product);
}

/** The result of combining a pod's terms with a policy's. */
type Product =
  | { readonly kind: "same" | "contradiction" | "nowhere" | "append-only" | "too large" | "too much work" }
  | {
      readonly kind: "terms";
      readonly terms: readonly ParsedTerm[];
      /** The policy's terms that came into it. */
      readonly added: readonly ParsedTerm[];
    };

/** The policy's terms for a pod that has none. */
function alone(wanted: readonly ParsedTerm[], selector: Selector): Product {
  const terms = wanted.filter((term) => isMatchable(term, selector));
  if (terms.length === 0) return { kind: "contradiction" };
  return isTooLarge(terms) ? { kind: "too large" } : { kind: "terms", terms, added: terms };
}

function isTooLarge(terms: readonly ParsedTerm[]): boolean {
  return terms.length > MAX_TERMS || terms.reduce((sum, { size }) => sum + size, 0) > MAX_REQUIREMENTS;
}

/** Each term of the pod with each of the policy, where needed. */
function productOf(
  present: readonly ParsedTerm[],
  wanted: readonly ParsedTerm[],
  selector: Selector,
  appendOnly: boolean,
  limit: WorkLimit,
): Product {
  const usable = wanted.filter(({ requirements }) => requirements.size > 0);
  const possible = usable.filter((term) => isMatchable(term, selector));
  const matchable = new Set(present.filter((mine) => isObject(mine.term) && isMatchable(mine, selector)));
  /** The terms of the policy that a term of the pod has all requirements of. */
  const met = new Map([...matchable].map((mine) => [mine, usable.filter((term) => hasAll(mine, term))]));
  const toCombine = [...matchable].filter((mine) => met.get(mine)?.length === 0);
  if (toCombine.length > 0 && !limit.admits(workOfProduct(sizeOfParsed(toCombine), sizeOfParsed(possible))))
    return { kind: "too much work" };
  const added = new Set<ParsedTerm>();
  const terms: ParsedTerm[] = [];
  const seen = new Map<number, ParsedTerm[]>();
  /** Whether terms of the same requirements are in the product already. */
  const isRepeated = (term: ParsedTerm): boolean => {
    const alike = seen.get(term.requirements.size) ?? [];
    if (alike.some((other) => hasAll(other, term))) return true;
    seen.set(term.requirements.size, [...alike, term]);
    return false;
  };
  let [size, someRemain, dropped] = [0, false, false];
  for (const mine of present) {
    const has = met.get(mine);
    if (has === undefined || has.length > 0) {
      for (const one of has ?? []) added.add(one);
      terms.push(mine);
      if (has === undefined) continue;
      isRepeated(mine);
      someRemain = true;
      continue;
    }
    const before = terms.length;
    for (const theirs of possible) {
      if (!areCompatible(mine, theirs)) continue;
      const both = combination(mine, theirs);
      added.add(theirs);
      someRemain = true;
      // Equal combinations are written once.
      if (isRepeated(both) && !appendOnly) continue;
      terms.push(both);
      size += both.size;
      if (terms.length > MAX_TERMS || size > MAX_REQUIREMENTS) return { kind: "too large" };
    }
    if (terms.length !== before + 1) dropped = true;
  }
  if (matchable.size === 0) return { kind: "nowhere" };
  if (!someRemain) return { kind: "contradiction" };
  if (toCombine.length === 0) return { kind: "same" };
  if (appendOnly && dropped) return { kind: "append-only" };
  return { kind: "terms", terms, added: [...added] };
}

function write(
  { draft, holders, removed, terms: parsed }: MergeContext,
  wanted: readonly JsonObject[],
  report: Report,
  path: Path,
  { terms, added }: Extract<Product, { kind: "terms" }>,
): void {
  // All terms of the policy are recorded, each once: one that is left out now may be possible without another policy.
  const named = [...new Map(wanted.map((term) => [canonical(term), term])).values()];
  const text = describe(added.map(({ term }) => term).filter(isObject));
  const finding = report.applied(path, text, removed.has(injectionText(path, named)));
  const written = terms.map(({ term }) => term);
  if (!draft.set(path, written, finding, { adds: named })) {
    report.unwritable(path, `${RULE} can't be written here`);
    return;
  }
  parsed.wrote(terms, listAt(draft.object, ...path));
  if (terms === added) holders.set(HOLDER, report.request.ref);
}

function describe(terms: readonly JsonObject[]): string {
  return `required node affinity ${describeTerms(terms)}`;
}

function reportSkipped(report: Report, path: Path, why: Exclude<Product["kind"], "same" | "terms">): void {
  const subject = `required node affinity of ${report.policy}`;
  const holder = report.holderOf(HOLDER);
  if (why === "too large")
    report.failed(
      path,
      "USHER-P12",
      `${subject} skipped: combined with the terms of ${holder} it exceeds ${MAX_TERMS} terms or ${MAX_REQUIREMENTS} requirements; use fewer`,
    );
  else if (why === "too much work")
    report.failed(
      path,
      "USHER-P12",
      `${subject} skipped: with the policies before it, it exceeds the work budget for one object; use fewer policies, with fewer terms and elements`,
    );
  else if (why === "append-only")
    report.skipped(
      path,
      "USHER-P13",
      `${subject} skipped: on a gated pod requirements can be appended, terms can't be added or removed`,
    );
  else if (why === "nowhere")
    report.skipped(path, "USHER-P11", `${subject} skipped: the terms of ${holder} match no node`);
  else report.contradiction(path, `${subject}: no node can match it and the terms of ${holder}`);
}

/**
 * Whether every node that a pod may run on is one that a term of the policy allows. Empty terms allow no node: where all are empty, only a
 * pod that runs nowhere is within them. Yes only where it is certain: no for requirements that are met only by several of the pod's
 * together, and for a pod that is too large to be compared.
 */
function isWithin(pod: ComparedPod, wanted: readonly ParsedTerm[], limit: WorkLimit): boolean {
  const { terms, ...own } = pod.requiredTerms;
  const { requirements, values } = requirementsIn(wanted);
  const compared = requirements * own.values + own.requirements * values;
  if (!limit.admits(terms === "too large" ? Number.POSITIVE_INFINITY : compared / 4)) return false;
  if (terms === "too large") return false;
  const alternatives = wanted.filter(({ requirements }) => requirements.size > 0);
  const isAllowed = (mine: TermMeaning) =>
    alternatives.some(({ meaning }) => meaning !== undefined && isMet(meaning, mine, pod));
  if (terms === undefined) return isAllowed(NO_REQUIREMENTS);
  // A term without a meaning matches no node.
  return terms.every(({ meaning }) => meaning === undefined || isAllowed(meaning));
}

const NO_REQUIREMENTS: TermMeaning = { labels: new Map(), names: [] };

/** Whether a pod's term, or its nodeSelector, implies each requirement of a policy's term. */
function isMet(wanted: TermMeaning, mine: TermMeaning, pod: ComparedPod): boolean {
  for (const [key, requirements] of wanted.labels) {
    const value = own(pod.nodeSelector, key);
    const selected: LabelRequirement[] =
      typeof value === "string" ? [{ key, operator: "In", values: valuesOf([value]) }] : [];
    const given = [...selected, ...(mine.labels.get(key) ?? [])];
    if (!requirements.every((one) => impliedBy(given, one))) return false;
  }
  return wanted.names.every((one) => mine.names.some((other) => impliesName(other, one)));
}

/** One string for alternatives of the same meaning: in any order, and without those that are narrower than another. */
export function termsMeaning(terms: readonly Json[]): string {
  const all = [
    ...new Map(terms.map((term) => [canonical([...requirementsOf(term)].sort()), requirementsOf(term)])),
  ];
  const widest = all.filter(([, one]) => !all.some(([, other]) => other !== one && other.isSubsetOf(one)));
  return canonical(widest.map(([text]) => text).sort());
}

function compile(terms: readonly JsonObject[], criteria: Criteria): CompiledCriterion {
  const possible = terms.filter((term) => isMatchable(parseTerm(term), new Map()));
  const labels = wantedOf(criteria, nodeSelector) ?? [];
  const added = { variable: "requiredTerms", path: REQUIRED_NODE_AFFINITY };
  const written = `{"nodeSelectorTerms": variables.${added.variable}}`;
  return {
    ...(possible.length === 0
      ? { patches: [] }
      : {
          variables: [TERMS, SELECTOR, ...termVariables(possible, selectorAfter(labels), added.variable)],
          patches: [`(${isAdded(added)} ? [${patch("add", placeOf(REQUIRED_NODE_AFFINITY), written)}] : [])`],
          added,
        }),
    checks: [termsCheck(possible)],
    cost: costOf(terms, labels.length),
  };
}

function costOf(terms: readonly JsonObject[], labels: number): number {
  const most = Math.max(
    0,
    ...terms.map((term) => LISTS.reduce((sum, list) => sum + listAt(term, list).length, 0)),
  );
  const product = LARGE.terms * terms.length;
  // Equal combinations are found by comparing each with each; more than the limit are not written.
  const comparing = product > MAX_TERMS ? 0 : (80 + 6 * most) * product ** 2;
  return Math.max(judgingCost(labels, terms.length, most), comparing);
}

const SAME = "r.key == s.key && r.operator == s.operator && sets.equivalent(r.values, s.values)";

/** Whether one term has all requirements of another. */
const celHasAll = (term: string, other: string) =>
  LISTS.map((list) => `${other}.${list}.all(r, ${term}.${list}.exists(s, ${SAME}))`).join(" && ");

/** Each term of the pod with each of the policy, as `productOf` combines them. */
function termVariables(terms: readonly JsonObject[], selector: string, name: string): Variable[] {
  const wanted = terms.map((term) =>
    Object.fromEntries(
      LISTS.map((list) => [
        list,
        listAt(term, list).map((one) => ({
          key: own(one, "key") ?? "",
          operator: own(one, "operator") ?? "",
          values: listAt(one, "values"),
        })),
      ]),
    ),
  );
  const both = LISTS.map(
    (list) => `"${list}": dyn(m.${list} + w.${list}.filter(r, !m.${list}.exists(s, ${SAME})))`,
  );
  const kept = LISTS.map((list) => `"${list}": dyn(m.${list})`);
  const isPossible = couldMatch(`c.${EXPRESSIONS} + variables.${selector}`, `c.${FIELDS}`);
  const combine = `variables.wanted.map(w, dyn({${both.join(", ")}, "kept": dyn(false)})).filter(c, ${isPossible})`;
  const met = `variables.wanted.exists(w, ${celHasAll("m", "w")})`;
  const changed =
    "(variables.product.size() != variables.terms.size() || variables.product.exists(c, !c.kept))";
  const someRemain = `variables.product.exists(c, !c.kept || ${matchable("c", selector)})`;
  const repeated = `variables.product.exists(j, d, j < i && ${celHasAll("c", "d")} && ${celHasAll("d", "c")})`;
  const written = `{"${EXPRESSIONS}": c.${EXPRESSIONS}, "${FIELDS}": c.${FIELDS}}`;
  return [
    { name: "wanted", expression: `dyn(${celValue(wanted)})` },
    {
      name: "product",
      expression: `dyn(variables.terms.map(m, ${matchable("m", selector)} && !${met} ? dyn(${combine}) : dyn([{${kept.join(", ")}, "kept": dyn(true)}])).flatten())`,
    },
    {
      name,
      expression: `dyn(!${fieldOf(REQUIRED_NODE_AFFINITY)}.hasValue() ? variables.wanted.filter(c, ${isPossible}) : ${changed} && ${someRemain} && variables.product.size() <= ${MAX_TERMS} ? dyn(variables.product.transformList(i, c, c.kept || !${repeated}, ${written})) : dyn([]))`,
    },
  ];
}

/** Each term of the pod, or without any its nodeSelector, implies a term of the policy, as `isWithin` has it. */
function termsCheck(possible: readonly JsonObject[]): CelCheck {
  const within = (requirements: string, names: string | undefined) =>
    possible
      .map((term) =>
        [
          ...listAt(term, EXPRESSIONS).map((one) => `(${requirements}).exists(g, ${celImplies(one)})`),
          ...listAt(term, FIELDS).map((one) =>
            names === undefined ? "false" : `${names}.exists(g, ${celImpliesName(one)})`,
          ),
        ].join(" && "),
      )
      .map((all) => `(${all})`)
      .join(" || ") || "false";
  const [mine, names] = [`t.${EXPRESSIONS}`, `t.${FIELDS}`];
  const isEmpty = `${mine}.size() + ${names}.size() == 0`;
  const inTerms = `variables.terms.all(t, ${isEmpty} || !(${couldMatch(mine, names)}) || ${within(`variables.selector + ${mine}`, names)})`;
  return {
    expression: `${fieldOf(REQUIRED_NODE_AFFINITY)}.hasValue() ? ${inTerms} : ${within("variables.selector", undefined)}`,
    variables: [TERMS, SELECTOR],
    path: REQUIRED_NODE_AFFINITY,
    wants: "the policy's required node affinity",
  };
}

/** Whether requirement `g` alone implies another; see core/kubernetes/selectors/node-requirements.ts. */
function celImplies(wanted: Json): string {
  const operator = stringAt(wanted, "operator") ?? "";
  const values = celValue([...new Set(listAt(wanted, "values"))]);
  const bound = parseInt64(stringAt(wanted, "values", 0) ?? "") ?? 0n;
  const beyond = operator === "Gt" ? ">" : "<";
  const ways: Readonly<Partial<Record<string, string>>> = {
    In: `g.operator == "In" && g.values.all(v, v in ${values})`,
    NotIn: `g.operator == "In" ? !g.values.exists(v, v in ${values}) : g.operator == "NotIn" ? ${values}.all(v, v in g.values) : g.operator == "DoesNotExist"`,
    Exists: '!(g.operator in ["NotIn", "DoesNotExist"])',
    DoesNotExist: 'g.operator == "DoesNotExist"',
  };
  const numeric = `g.operator == "${operator}" ? int(g.values[0]) ${beyond}= ${bound} : g.operator == "In" && g.values.all(v, v.matches("^0*[0-9]{1,18}$") && int(v) ${beyond} ${bound})`;
  return `g.key == ${celString(stringAt(wanted, "key") ?? "")} && (${ways[operator] ?? numeric})`;
}

function celImpliesName(wanted: Json): string {
  const name = celString(stringAt(wanted, "values", 0) ?? "");
  return stringAt(wanted, "operator") === "In"
    ? `g.operator == "In" && g.values[0] == ${name}`
    : `(g.operator == "In") != (g.values[0] == ${name})`;
}
