import type { Draft } from "../decision/draft.ts";
import { equal, type JsonObject, stringAt } from "../json.ts";
import type { Path } from "../path.ts";
import { readProvenance } from "./annotation.ts";

/**
 * Requests a reapply, with any value: policies' injections are removed, current ones are added. Every client that may
 * update the object may request it. The webhook removes the annotation in the same response, so that it counts once.
 */
export const REAPPLY = "usher.dev/reapply";

const PLACE: Path = ["metadata", "annotations", REAPPLY];

/** Removes the request for a reapply; false if there is none. */
export function consumeReapply(draft: Draft): boolean {
  return draft.get(...PLACE) !== undefined && draft.remove(PLACE, undefined);
}

/**
 * Whether the update is a reapply: it requests one, or an earlier call for it did. The API server may call again for
 * one update, when the request annotation is gone; by then the provenance annotation has the version of the stored
 * object that the reapply started from.
 */
export function isReapply(draft: Draft): boolean {
  if (draft.old === undefined) return false;
  if (draft.get(...PLACE) !== undefined) return true;
  if (draft.edits.some(({ kind, path }) => kind === "remove" && equal(path, PLACE))) return true;
  const version = versionOf(draft.old);
  return version !== undefined && readProvenance(draft.object).reappliedFrom === version;
}

/** The version that the annotation names after a reapply of a stored object. */
export function versionOf(old: JsonObject | undefined): string | undefined {
  return stringAt(old, "metadata", "resourceVersion") || undefined;
}
