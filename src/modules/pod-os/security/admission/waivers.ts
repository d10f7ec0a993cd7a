import { isObject, type Json, type JsonObject, listAt } from "../../../../core/json.ts";
import { CONTAINER_LISTS } from "../../os/tables.ts";
import type { CheckFailure } from "../check.ts";
import { coversContainer, type Exception, isOfContainers } from "../exceptions/exceptions.ts";

export interface Waived {
  /** The remaining violations. */
  readonly violations: readonly CheckFailure[];
  /** The exceptions that waived something, with the checks that they did it for. */
  readonly used: readonly { readonly exception: Exception; readonly checks: readonly string[] }[];
}

/**
 * Comparisons of containers with images and names of exceptions, for one check: a pod of 30 containers in a namespace
 * with 1,000 exceptions. Each of 19 checks compares them twice, in some milliseconds. In a larger pod
 * container-specific exceptions waive nothing.
 */
const MOST_COMPARISONS = 30_000;

/**
 * Removes waived violations. A container-specific exception waives a check only for its containers: the check is
 * evaluated again without them, so that it still applies to the pod itself and its other containers.
 */
export function waive(
  violations: readonly CheckFailure[],
  spec: JsonObject,
  exceptions: readonly Exception[],
  evaluate: (spec: JsonObject, check: string) => readonly CheckFailure[],
): Waived {
  if (violations.length === 0 || exceptions.length === 0) return { violations, used: [] };
  const containers = containersOf(spec);
  const used = new Map<Exception, string[]>();
  const left = violations.flatMap((violation) => {
    const mine = exceptions.filter(({ checks }) => checks.has(violation.check));
    const [whole] = mine.filter((one) => !isOfContainers(one));
    if (whole !== undefined) {
      used.set(whole, [...(used.get(whole) ?? []), violation.check]);
      return [];
    }
    const patterns = mine.reduce((sum, { images = [] }) => sum + 1 + images.length, 0);
    if (patterns * containers.length > MOST_COMPARISONS) return [violation];
    const some = mine.filter((one) => containers.some((container) => coversContainer(one, container)));
    if (some.length === 0) return [violation];
    const isCovered = (container: Json): boolean => some.some((one) => coversContainer(one, container));
    const again = evaluate(without(spec, isCovered), violation.check).find(
      ({ check }) => check === violation.check,
    );
    if (again?.detail === violation.detail) return [violation];
    for (const one of some) used.set(one, [...(used.get(one) ?? []), violation.check]);
    return again === undefined ? [] : [{ ...again, causes: causesLeft(violation, spec, isCovered) }];
  });
  return {
    violations: left,
    used: [...used].map(([exception, checks]) => ({ exception, checks })),
  };
}

function containersOf(spec: JsonObject): Json[] {
  return CONTAINER_LISTS.flatMap((list) => listAt(spec, list)).filter(isObject);
}

function without(spec: JsonObject, isCovered: (container: Json) => boolean): JsonObject {
  const lists = CONTAINER_LISTS.map((list) => [list, listAt(spec, list).filter((one) => !isCovered(one))]);
  return { ...spec, ...Object.fromEntries(lists) };
}

/** With the fields of the whole pod: without some containers the others have other indexes. */
function causesLeft({ causes }: CheckFailure, spec: JsonObject, isCovered: (container: Json) => boolean) {
  const gone = new Set(
    CONTAINER_LISTS.flatMap((list) =>
      listAt(spec, list).flatMap((one, i) => (isCovered(one) ? [`${list} ${i}`] : [])),
    ),
  );
  return causes.filter(({ path: [, list, index] }) => !gone.has(`${list} ${index}`));
}
