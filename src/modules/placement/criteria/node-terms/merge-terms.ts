import { at, canonical, isObject, type JsonObject, listAt } from "../../../../core/json.ts";
import type { Path } from "../../../../core/path.ts";
import { injectionText, type MergeContext } from "../../merge/context.ts";
import type { Report } from "../../merge/report.ts";
import {
  describeTerms,
  MAX_REQUIREMENTS,
  MAX_TERMS,
  REQUIRED_NODE_AFFINITY,
  REQUIRED_TERMS,
} from "./node-terms.ts";
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
export function mergeTerms(target: MergeContext, wanted: readonly JsonObject[], report: Report): void {
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
  const making = { known: target.terms, selector: target.terms.selector(podSpec), budget: target.budget };
  const appendOnly = target.limits.appendOnly === true && !report.restoring;
  const product = absent ? alone(wanted, making) : productOf(list, wanted, making, appendOnly);
  if (product.kind === "same") report.same(path, textOf(wanted), wanted);
  else if (product.kind !== "terms") reportSkipped(report, path, product.kind);
  else if (!report.immutable(path)) write(target, wanted, report, path, product);
}

function write(
  { draft, holders, removed, terms: known }: MergeContext,
  wanted: readonly JsonObject[],
  report: Report,
  path: Path,
  { terms, added }: Extract<Product, { kind: "terms" }>,
): void {
  // All terms of the policy are recorded, each once: one that is left out now may be possible without another policy.
  const named = [...new Map(wanted.map((term) => [canonical(term), term])).values()];
  const finding = report.applied(path, textOf(added), removed.has(injectionText(path, named)));
  if (!draft.set(path, terms, finding, { adds: named })) {
    report.unwritable(path, `${RULE} can't be written here`);
    return;
  }
  known.wrote(terms, listAt(draft.object, ...path));
  if (terms === added) holders.set(HOLDER, report.request.ref);
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
