import type { Json, JsonObject } from "../../../core/json.ts";
import type { Path } from "../../../core/path.ts";
import { joinQuote, MOST_LISTED, plural } from "../go-text.ts";
import type { FieldViolation, FixEdit } from "./check.ts";
import { type CheckedPod, containerPath, nameOf } from "./checked-pod.ts";

/** The containers whose security context violates a rule, by index; `undefined` if there are none. */
export function containersWhere(
  pod: CheckedPod,
  breaks: (context: JsonObject) => boolean,
): number[] | undefined {
  let found: number[] | undefined;
  const { contexts } = pod;
  for (let i = 0; i < contexts.length; i++) {
    const context = contexts[i];
    if (context === undefined || !breaks(context)) continue;
    if (found === undefined) found = [i];
    else found.push(i);
  }
  return found;
}

/** `container "a"`, `containers "a", "b"`. */
export function containerNames(pod: CheckedPod, indexes: readonly number[]): string {
  return `${plural("container", "containers", indexes.length)} ${joinQuote(namesOf(pod.containers, indexes))}`;
}

/** The names of these containers or volumes, as many as a message lists. */
export function namesOf(all: readonly JsonObject[], indexes: readonly number[]): string[] {
  return indexes.slice(0, MOST_LISTED).map((i) => nameOf(all[i]));
}

/** The pod, containers, or both: `pod and container "a"`. */
export function setters(pod: CheckedPod, podBreaks: boolean, indexes: readonly number[] | undefined): string {
  const containers = indexes === undefined ? [] : [containerNames(pod, indexes)];
  return [...(podBreaks ? ["pod"] : []), ...containers].join(" and ");
}

/** The same field of the pod's security context and of those of at most `most` containers. */
export function contextPaths(
  pod: CheckedPod,
  podBreaks: boolean,
  indexes: readonly number[] | undefined,
  most: number,
  ...field: Path
): Path[] {
  const containers = (indexes ?? [])
    .slice(0, most)
    .map((i) => containerPath(pod, i, "securityContext", ...field));
  return podBreaks ? [["spec", "securityContext", ...field], ...containers] : containers;
}

export function causesAt(paths: readonly Path[], message: string): FieldViolation[] {
  return paths.map((path) => ({ path, message }));
}

/** A fix that removes the fields at fault. */
export function removeFields(causes: readonly FieldViolation[]): FixEdit[] {
  return causes.map(({ path }) => ({ path }));
}

/** A fix that removes elements of lists, the last one first, so that the others keep their index. */
export function removeElements(causes: readonly FieldViolation[]): FixEdit[] {
  return removeFields(causes).reverse();
}

/** A fix that removes profiles whose type is at fault, and annotations. */
export function removeProfiles(causes: readonly FieldViolation[]): FixEdit[] {
  return causes.map(({ path }) => ({ path: path[0] === "metadata" ? path : path.slice(0, -1) }));
}

/** Of values, not of objects; empty if there is no list. */
export function listOf(value: Json | undefined): readonly Json[] {
  return Array.isArray(value) ? value : [];
}
