import type { Draft } from "../../../core/evaluate/draft.ts";
import type { Path } from "../../../core/path.ts";

/**
 * Asks, by whatever value, that an object be placed anew: what policies put there goes, what they want now comes. Who may
 * update the object may ask. The webhook takes the annotation away in the same answer, so that it asks once.
 */
export const REAPPLY = "usher.dev/reapply";

const PLACE: Path = ["metadata", "annotations", REAPPLY];

/** Whether the object asks to be placed anew. After this it does not any more. */
export function consumeReapply(draft: Draft): boolean {
  return draft.get(...PLACE) !== undefined && draft.remove(PLACE, undefined);
}
