import {
  canonical,
  equal,
  holdsAtMost,
  isObject,
  type Json,
  type JsonObject,
  own,
} from "../../../../core/json.ts";
import type { Path } from "../../../../core/path.ts";
import { listRoom, readableElements } from "../../../../core/provenance/annotation.ts";
import { STEPS_TO_REPORT, valuesIn, type WorkBudget } from "../../merge/work-budget.ts";
import type { UnmetRequirement } from "../criterion.ts";

/** How a list is enforced. */
export interface Enforced {
  /** Whether an element of the pod has the effect of one of the policy. */
  readonly meets: (given: Json, wanted: Json) => boolean;
  /** The member that names an element in a message. */
  readonly namedBy: string;
  /** @default every element */
  readonly only?: (element: JsonObject) => boolean;
}

/** Elements up to this size cost no more to compare than the policy's. */
const SMALL = 64;

/** Comparing two elements may search each item of one among several of the other. */
const STEPS_TO_COMPARE = 8;

/** The policy's elements that no element of a pod's list meets. What exceeds the work budget is unmet. */
export function unmetElements(
  path: Path,
  given: readonly Json[],
  wanted: readonly JsonObject[],
  { meets, namedBy, only }: Enforced,
  budget: WorkBudget,
): UnmetRequirement[] {
  const required = only === undefined ? wanted : wanted.filter(only);
  if (required.length === 0) return [];
  const read = readList(given);
  budget.spend(given.length);
  return required.flatMap((one) => {
    const size = valuesIn(one);
    const steps = STEPS_TO_COMPARE * size;
    if (budget.spend(STEPS_TO_REPORT + steps) && textsOf(read, size).has(canonical(one))) return [];
    for (const { element, size } of read.elements) {
      if (!budget.spend(steps + (size > SMALL ? size : 0))) break;
      if (meets(element, one)) return [];
    }
    const name = own(one, namedBy);
    const which = typeof name === "string" && name !== "" ? ` with ${namedBy} ${name}` : "";
    return [{ path, wants: `the policy's entry${which}`, value: [one] }];
  });
}

interface ReadList {
  readonly length: number;
  readonly elements: readonly { readonly element: Json; readonly size: number }[];
  /** Whether elements are compared by their texts: not in a list that is too large. */
  readonly readable: boolean;
  /** By size: an element of another size is another element, and its text is not needed. */
  readonly texts: Map<number, ReadonlySet<string>>;
}

/** By list: each policy asks for it. A list of another length has been appended to since. Dropping it changes no result. */
const lists = new WeakMap<readonly Json[], ReadList>();

function readList(given: readonly Json[]): ReadList {
  const known = lists.get(given);
  if (known?.length === given.length) return known;
  const readable = readableElements(given, listRoom());
  const elements = readable ?? given.filter((one) => holdsAtMost(one, SMALL, SMALL));
  const read = {
    length: given.length,
    elements: elements.map((element) => ({ element, size: valuesIn(element) })),
    readable: readable !== undefined,
    texts: new Map(),
  };
  lists.set(given, read);
  return read;
}

/** Nearly always an element is there as the policy has it: usher has injected it. */
function textsOf({ elements, readable, texts }: ReadList, size: number): ReadonlySet<string> {
  const known = texts.get(size);
  if (known !== undefined) return known;
  const ofSize = readable ? elements.filter((one) => one.size === size) : [];
  const read = new Set(ofSize.map(({ element }) => canonical(element)));
  texts.set(size, read);
  return read;
}

/**
 * Whether an element has all that another has: equal members, lists with at least its items. The API server itself extends terms: the
 * values that matchLabelKeys take from the pod become requirements of the selector.
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
