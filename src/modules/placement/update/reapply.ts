import type { Draft } from "../../../core/evaluate/draft.ts";
import type { Path } from "../../../core/path.ts";

/**
 * Requests a reapply, with any value: what policies had added is removed, what they want now is added. Whatever may update the object may
 * request it. The webhook removes the annotation in the same response, so that it counts once.
 */
export const REAPPLY = "usher.dev/reapply";

const PLACE: Path = ["metadata", "annotations", REAPPLY];

/** Whether the object requests a reapply. Removes the request. */
export function consumeReapply(draft: Draft): boolean {
  return draft.get(...PLACE) !== undefined && draft.remove(PLACE, undefined);
}
