import type { Project as Place } from "../decision/count.ts";
import type { LimitSubject } from "../decision/subject.ts";
import { entryOf, type LedgerProject } from "./match-entry.ts";
import type { LedgerEntry } from "./project-usage.ts";

/**
 * The places in use: by namespaces that the view shows, and by entries whose namespace it does not show yet. One name is one place,
 * because no two namespaces share one; but a terminating namespace, which may be forgiven, can make room for another of its name, and
 * then an entry that is not its own has a place beside it.
 */
export function placesOf(
  subject: LimitSubject,
  projects: readonly LedgerProject[],
  entries: readonly LedgerEntry[],
): Place[] {
  const reserved = Map.groupBy(entries, ({ name }) => name);
  const places: Place[] = [];
  for (const { name, terminating, ...project } of projects) {
    places.push({ name, terminating });
    const same = reserved.get(name) ?? [];
    reserved.delete(name);
    if (!terminating) continue;
    const holder = entryOf({ name, terminating, ...project }, same, subject);
    if (same.some((entry) => entry !== holder)) places.push({ name, terminating: false });
  }
  // What has no name yet will have one of its own.
  for (const [name, same] of reserved)
    for (const _ of name === "" ? same : [name]) places.push({ name, terminating: false });
  return places;
}
