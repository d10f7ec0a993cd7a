import type { Draft } from "../../../../core/evaluate/draft.ts";
import { at, equal, isObject, type Json, type JsonObject, listAt } from "../../../../core/json.ts";
import { type Path, pointer } from "../../../../core/path.ts";
import type { Report } from "../../merge/report.ts";
import { storedOrder, storedOrigins, storedValue } from "../../merge/stored-value.ts";
import type { Target } from "../../merge/target.ts";
import type { Selector } from "./known-selector.ts";
import type { KnownTerms } from "./known-term.ts";
import {
  cameFrom,
  describeTerms,
  MAX_REQUIREMENTS,
  MAX_TERMS,
  REQUIRED_NODE_AFFINITY,
  REQUIRED_TERMS,
  weightOf,
} from "./node-terms.ts";
import { meansStored } from "./stored-terms.ts";
import { alone, type Product, productOf } from "./term-product.ts";

const RULE = "affinity.nodeAffinity.required";
const HOLDER = "requiredNodeAffinity";

/**
 * Combines each term of the pod with each of the policy, the pod's requirements first. A term that has all requirements of one of the
 * policy's is kept: so applying it twice changes nothing further. Terms that match no node by themselves are kept, too: nothing can
 * narrow them.
 *
 * A combination that no node can match, nodeSelector included, is left out while another remains. If none does, or a gated pod would have
 * to gain or lose a term, the policy's terms are skipped together.
 */
export function mergeTerms(target: Target, wanted: readonly JsonObject[], report: Report): void {
  const { draft, spec } = target;
  const path = [...spec, ...REQUIRED_TERMS];
  const podSpec = at(draft.object, ...spec);
  const present = at(podSpec, ...REQUIRED_NODE_AFFINITY);
  const list = at(present, "nodeSelectorTerms") ?? [];
  const absent = present === undefined || present === null;
  const size = Array.isArray(list) ? target.terms.sizeOf(list) : "unreadable";
  if (!Array.isArray(list) || size === "unreadable" || !(absent || isObject(present))) {
    report.unwritable(path, `${RULE} is not a list of terms here`);
    return;
  }
  if (size === "too large") {
    reportSkipped(report, path, "too large");
    return;
  }
  const selector = target.terms.selector(podSpec);
  if (report.restoring && restored(target, wanted, report, path, absent ? undefined : list, selector)) return;
  const making = { known: target.terms, selector, budget: target.budget };
  const appendOnly = target.limits.appendOnly === true && !report.restoring;
  const product = absent ? alone(wanted, making) : productOf(list, wanted, making, appendOnly);
  if (product.kind === "same") {
    report.same(path, textOf(wanted), wanted);
    reinstate(target, wanted, report, path, list, selector);
  } else if (product.kind !== "terms") reportSkipped(report, path, product.kind);
  else if (!report.immutable(path)) write(target, report, path, product, selector);
}

function write(
  { draft, holders, terms: known, budget }: Target,
  report: Report,
  path: Path,
  product: Extract<Product, { kind: "terms" }>,
  selector: Selector,
): void {
  const { old } = draft;
  const stored =
    old === undefined ? undefined : known.stored(() => storedOrder(draft, path, at(old, ...path)));
  // Other terms of the same meaning would be another template, and roll out.
  const again =
    isReadable(known, stored) && meansStored(stored, product.terms, [], { known, selector, budget });
  const terms = again ? stored : product.terms;
  const removed = storedValue(draft, path);
  if (isReadable(known, removed))
    for (const term of [...removed, ...product.added]) budget.spend(4 * weightOf(term));
  const was = isReadable(known, removed) && cameFrom(removed, product.added);
  const finding = report.applied(path, textOf(product.added), was);
  if (!draft.set(path, terms, finding, { elements: product.added, all: true })) {
    report.unwritable(path, `${RULE} can't be written here`);
    return;
  }
  known.wrote(terms, listAt(draft.object, ...path));
  if (product.terms === product.added) holders.set(HOLDER, report.request.ref);
}

/** Restores the stored terms if they are those of the pod with all that was added: then that is all for every policy. */
function restored(
  { draft, terms: known, budget }: Target,
  wanted: readonly JsonObject[],
  report: Report,
  path: Path,
  own: readonly Json[] | undefined,
  selector: Selector,
): boolean {
  const stored = draft.old === undefined ? undefined : at(draft.old, ...path);
  if (!isReadable(known, stored)) return false;
  if (own !== undefined && equal(stored, own)) return true;
  // Answered once for each object: adding to the pod's terms gives the product anyway, so a difference counts for every policy. Not at
  // the cost of what is then restored.
  const same = known.sameAsStored(() =>
    meansStored(stored, own, addedTo(draft, path), { known, selector, budget: budget.separate() }),
  );
  if (!same) return false;
  return draft.set(path, stored, report.applied(path, textOf(wanted), false), {
    elements: wanted,
    all: true,
  });
}

/** Where a removed part turns out to be wanted, the terms as they are stored mean the same and change nothing. */
function reinstate(
  { draft, terms: known, budget }: Target,
  wanted: readonly JsonObject[],
  report: Report,
  path: Path,
  now: readonly Json[],
  selector: Selector,
): void {
  const { old } = draft;
  if (old === undefined || storedValue(draft, path) === undefined) return;
  const stored = known.stored(() => storedOrder(draft, path, at(old, ...path)));
  if (
    !isReadable(known, stored) ||
    equal(stored, now) ||
    !meansStored(stored, now, [], { known, selector, budget })
  )
    return;
  draft.set(path, stored, report.applied(path, textOf(wanted), true), { elements: wanted, all: true });
}

/** What each policy has added to the stored object's terms. */
function addedTo({ old }: Draft, path: Path): (readonly Json[])[] {
  const list = pointer(path);
  return storedOrigins(old).flatMap(({ added }) => {
    const terms = added[list];
    return terms === undefined ? [] : [terms];
  });
}

function isReadable(known: KnownTerms, value: Json | undefined): value is readonly Json[] {
  return Array.isArray(value) && known.sizeOf(value) === "readable";
}

function textOf(terms: readonly JsonObject[]): string {
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
  else if (why === "too much work") report.budgetExceeded(path, "required node affinity");
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
