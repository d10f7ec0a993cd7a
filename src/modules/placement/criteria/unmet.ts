import {
  canonical,
  equal,
  holdsAtMost,
  isObject,
  type Json,
  type JsonObject,
  listAt,
  own,
} from "../../../core/json.ts";
import type { Path } from "../../../core/path.ts";
import { listRoom, readableElements } from "../../../core/provenance/annotation.ts";
import type { Criteria, UnmetRequirement } from "./criterion.ts";
import { type ParsedTerm, parseTerm, requiredTermsOf, sizeOfTerms } from "./node-term.ts";
import { valuesIn, WorkLimit } from "./work-limit.ts";

/** Elements of a list that is too large are compared up to this size. */
const SMALL = 64;

/** Elements of a list, with the number of values in each and in all. */
interface ComparedList {
  readonly elements: readonly Json[];
  readonly values: number;
  /** The elements as texts; none of a list that is too large. */
  readonly texts: ReadonlySet<string>;
}

/** The required terms of a pod. */
interface RequiredTerms {
  /** `undefined` where it has no required node affinity. */
  readonly terms: readonly ParsedTerm[] | "too large" | undefined;
  readonly requirements: number;
  readonly values: number;
}

/** A pod's spec while it is compared with the requirements of policies: each list and term is read once for all of them. */
export class ComparedPod {
  readonly spec: JsonObject | undefined;
  readonly #lists = new Map<string, ComparedList>();
  #terms: RequiredTerms | undefined;

  constructor(spec: JsonObject | undefined) {
    this.spec = spec;
  }

  get nodeSelector(): Json | undefined {
    return own(this.spec, "nodeSelector");
  }

  get requiredTerms(): RequiredTerms {
    this.#terms ??= termsOf(this.spec);
    return this.#terms;
  }

  list(path: Path): ComparedList {
    const name = path.join(".");
    const known = this.#lists.get(name) ?? listOf(listAt(this.spec, ...path));
    this.#lists.set(name, known);
    return known;
  }
}

function termsOf(spec: JsonObject | undefined): RequiredTerms {
  const terms = requiredTermsOf(spec);
  if (terms === undefined) return { terms, requirements: 0, values: 0 };
  if (typeof sizeOfTerms(terms) === "string") return { terms: "too large", requirements: 0, values: 0 };
  const parsed = terms.map(parseTerm);
  return { terms: parsed, ...requirementsIn(parsed) };
}

/** The number of requirements of terms, and of the values in them. */
export function requirementsIn(terms: readonly ParsedTerm[]): Omit<RequiredTerms, "terms"> {
  let [requirements, values] = [0, 0];
  for (const one of terms) {
    requirements += one.size;
    values += one.values;
  }
  return { requirements, values };
}

function listOf(given: readonly Json[]): ComparedList {
  const readable = readableElements(given, listRoom());
  const elements = readable ?? given.filter((one) => holdsAtMost(one, SMALL, SMALL));
  return {
    elements,
    values: valuesIn(elements),
    texts: new Set(readable?.map(canonical)),
  };
}

/** How a list is enforced. */
export interface Enforced {
  /** Whether an element of the pod has the effect of one of the policy. */
  readonly meets: (given: Json, wanted: Json) => boolean;
  /** The member that names an element in a message. */
  readonly namedBy: string;
  /** @default every element */
  readonly only?: (element: JsonObject) => boolean;
}

/** The policy's elements that no element of a pod's list meets. Those that are too much to be compared are unmet. */
export function unmetElements(
  pod: ComparedPod,
  path: Path,
  wanted: readonly { readonly element: JsonObject; readonly canonical: string }[],
  { meets, namedBy, only }: Enforced,
  limit: WorkLimit,
): UnmetRequirement[] {
  const { elements, values, texts } = pod.list(path);
  const required = only === undefined ? wanted : wanted.filter(({ element }) => only(element));
  // Nearly always an element is there as the policy has it: usher has injected it.
  const others = required.filter((one) => !texts.has(one.canonical)).map(({ element }) => element);
  const isComparable = others.length === 0 || limit.admits(valuesIn(others) * values);
  return others
    .filter((one) => !isComparable || !elements.some((element) => meets(element, one)))
    .map((one) => {
      const name = own(one, namedBy);
      const which = typeof name === "string" && name !== "" ? ` with ${namedBy} ${name}` : "";
      return { path, wants: `the policy's entry${which}`, value: [one] };
    });
}

/**
 * Whether an element has everything that another has: equal members, lists with at least its items. The API server
 * itself extends terms: the values that matchLabelKeys takes from the pod become requirements of the selector.
 */
export function extendsElement(given: Json | undefined, wanted: Json | undefined): boolean {
  if (Array.isArray(wanted)) {
    if (!Array.isArray(given)) return wanted.length === 0 && (given === undefined || given === null);
    return wanted.every((item: Json) => given.some((other: Json) => equal(other, item)));
  }
  if (!isObject(wanted) || !isObject(given)) return equal(given, wanted);
  const extra = Object.keys(given).every((key) => {
    const value = given[key];
    return own(wanted, key) !== undefined || value === undefined || value === null || Array.isArray(value);
  });
  return extra && Object.keys(wanted).every((key) => extendsElement(own(given, key), wanted[key]));
}

/**
 * The requirements of a policy that a pod's spec does not meet, judged by meaning: a stronger requirement meets a weaker one, a wider
 * toleration a narrower one. Preferences are not enforced. Requirements that are too much to be compared are unmet.
 */
export function unmetRequirements(
  criteria: Criteria,
  pod: ComparedPod,
  limit = new WorkLimit(),
): UnmetRequirement[] {
  return criteria.flatMap(({ criterion, prepared }) => criterion.unmet?.(pod, prepared, limit) ?? []);
}

/** True of a policy whose criteria are preferences, if any. */
export function requiresNothing(criteria: Criteria): boolean {
  return unmetRequirements(criteria, new ComparedPod(undefined)).length === 0;
}
