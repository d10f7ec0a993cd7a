import type { Json } from "../../../core/json.ts";

/**
 * Work on one object for the policies of one scope. Evaluation is synchronous, so no other request is answered meanwhile, and the owner of
 * a namespace decides how many policies it has. As much takes some ten milliseconds; a hundred policies of ordinary size take less than half.
 */
export const MAX_WORK = 65_536;

/** Looking at a policy, and writing or reporting one value of it. */
const WORK_OF_REPORT = 24;

/** How much a policy wants: known when it is prepared. */
export interface Size {
  /** The work of writing or reporting everything once. */
  readonly written: number;
  /** Each label is judged by all values of an object's required terms. */
  readonly labels: number;
  /** Each term is looked for in each required term of an object. */
  readonly terms: number;
}

/** How much the required terms of an object say. */
export interface TermsSize {
  readonly terms: number;
  readonly values: number;
}

/** The size of so many values that are written one by one, with so many values in them. */
export function sizeOf(written: number, values = 0, more: Partial<Size> = {}): Size {
  return { written: WORK_OF_REPORT * written + 3 * values, labels: 0, terms: 0, ...more };
}

/** The size of a policy: it is looked at, and all of its criteria are merged. */
export function sumOf(sizes: readonly Size[]): Size {
  return [sizeOf(1), ...sizes].reduce((a, b) => ({
    written: a.written + b.written,
    labels: a.labels + b.labels,
    terms: a.terms + b.terms,
  }));
}

/** The work of merging a policy into an object with these required terms, apart from combining terms. */
export function workOfMerge(policy: Size, own: TermsSize): number {
  return policy.written + (policy.labels * own.values + policy.terms * own.terms) / 4;
}

/** The work of combining each of these terms with each of those, and of writing the result. */
export function workOfProduct(a: TermsSize, b: TermsSize): number {
  return (a.terms * b.values + b.terms * a.values) / 2 + 3 * (a.values + b.values);
}

/** How many values a value holds, itself included. */
export function valuesIn(value: Json | undefined): number {
  if (typeof value !== "object" || value === null) return 1;
  let count = 1;
  for (const inner of Object.values(value)) count += valuesIn(inner);
  return count;
}

/**
 * The work that is left for one object. It follows from sizes and not from a clock, so the result is the same every time. Once work did
 * not fit, nothing does: policies are applied in their order up to the first that does not fit.
 */
export class WorkLimit {
  #left: number;

  constructor(work: number = MAX_WORK) {
    this.#left = work;
  }

  /** Whether this work may begin. */
  admits(work: number): boolean {
    if (this.#left < 0) return false;
    this.#left -= work;
    return this.#left >= 0;
  }

  get exceeded(): boolean {
    return this.#left < 0;
  }
}

/**
 * Cluster policies and namespaced ones have a limit each: the author of a namespace's policies can't use up what those of the cluster
 * need, whatever the priorities.
 */
export class WorkLimits {
  readonly #cluster: WorkLimit;
  readonly #namespaced: WorkLimit;

  constructor(work: number = MAX_WORK) {
    this.#cluster = new WorkLimit(work);
    this.#namespaced = new WorkLimit(work);
  }

  of({ namespace }: { readonly namespace?: string }): WorkLimit {
    return namespace === undefined ? this.#cluster : this.#namespaced;
  }
}
