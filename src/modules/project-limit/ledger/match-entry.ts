import { type Json, stringAt } from "../../../core/json.ts";
import { serviceAccountOf } from "../../../core/kubernetes/principals.ts";
import { type Project, requesterOf, toProject } from "../projects.ts";
import type { LimitSubject } from "../subject.ts";
import type { LedgerEntry } from "./project-usage.ts";

/** A namespace from the view of the ledger. */
export interface LedgerProject extends Project {
  readonly uid: string;
  /** By its annotation; `undefined`: it has none. */
  readonly requester: string | undefined;
}

export function projectOf(namespace: Json): LedgerProject {
  const uid = stringAt(namespace, "metadata", "uid") ?? "";
  return { ...toProject(namespace), uid, requester: requesterOf(namespace) };
}

/** Whether a requester counts as this subject: as itself, or as one of the service accounts of a namespace. */
function belongs(requester: string, subject: LimitSubject): boolean {
  if ("username" in subject) return requester === subject.username;
  return serviceAccountOf(requester)?.namespace === subject.serviceAccountsOf;
}

/**
 * The entry of a namespace. A creation is matched by the uid, which the API server had chosen before its call. The
 * namespace of a ProjectRequest has another uid, so name and requester count, but never an earlier namespace.
 */
export function entryOf(
  project: LedgerProject,
  entries: readonly LedgerEntry[],
  subject: LimitSubject,
): LedgerEntry | undefined {
  const { name, uid, requester } = project;
  const isOurs = requester !== undefined && belongs(requester, subject);
  const isOthers = requester !== undefined && !isOurs;
  const same = entries.filter((entry) => entry.name === name);
  return (
    same.find((entry) => entry.uid !== undefined && entry.uid === uid && !isOthers) ??
    same.find((entry) => entry.uid === undefined && entry.replaces !== uid && isOurs)
  );
}
