import type { Path } from "../../../core/path.ts";
import { pointer } from "../../../core/path.ts";
import type { Field } from "./criteria.ts";
import { LISTS, NAMES, REQUIRED_NODE_AFFINITY } from "./places.ts";

/** Where each field is below a pod's spec. A class of priorities takes the two numbers that follow from it with it. */
const PLACES: readonly (readonly [place: string, field: Field])[] = [
  ["/nodeSelector", "nodeSelector"],
  [pointer(REQUIRED_NODE_AFFINITY), "requiredNodeAffinity"],
  ...LISTS.map(({ path, field }) => [pointer(path), field] as const),
  ...NAMES.map((field) => [`/${field}`, field] as const),
  ["/priority", "priorityClassName"],
  ["/preemptionPolicy", "priorityClassName"],
];

/** The field that a place, as a JSON pointer from the top, is in or is; `undefined` where it is none of ours. */
export function fieldAt(place: string, spec: Path): Field | undefined {
  const base = pointer(spec);
  if (!place.startsWith(`${base}/`)) return undefined;
  const below = place.slice(base.length);
  return PLACES.find(([start]) => below === start || below.startsWith(`${start}/`))?.[1];
}
