import type { CommitResult } from "../../core/evaluate/evaluate.ts";
import type { Fact } from "../../core/evaluate/need.ts";
import { isObject, type JsonObject } from "../../core/json.ts";

/** Marks versions of objects that are not written yet, so that they never equal one of the API server's. */
const UNWRITTEN = "usher-unwritten-";
let lastUnwritten = 0;

/** A commit that is queued or in flight. */
export interface PendingCommit {
  readonly object: JsonObject;
  /** The version under which later requests see the object before it is written. */
  readonly version: string;
  readonly signal: AbortSignal;
  readonly result: Promise<CommitResult>;
  readonly resolve: (result: CommitResult) => void;
}

export function pendingCommit(object: JsonObject, signal: AbortSignal): PendingCommit {
  const { promise: result, resolve } = Promise.withResolvers<CommitResult>();
  return { object, version: `${UNWRITTEN}${++lastUnwritten}`, signal, result, resolve };
}

export function isUnwrittenVersion(version: string | undefined): boolean {
  return version?.startsWith(UNWRITTEN) === true;
}

/** The object as a fact, before it is written. */
export function unwrittenFact({ object, version }: PendingCommit): Fact {
  const metadata = isObject(object["metadata"]) ? object["metadata"] : {};
  const found = { ...object, metadata: { ...metadata, resourceVersion: version } };
  return { found, complete: true, unwritten: true };
}

export function resolveAll(commits: readonly PendingCommit[], result: CommitResult): void {
  for (const { resolve } of commits) resolve(result);
}
