import type { Draft } from "../../../core/evaluate/draft.ts";
import type { Path } from "../../../core/path.ts";
import type { Origin } from "../../../core/provenance/origin.ts";
import { CRITERIA } from "../criteria/criteria.ts";

/** Places, then elements, then combined terms. The order shows in patches, so it must not change. */
const REMOVAL = (["set", "added", "combined"] as const).flatMap((kind) =>
  CRITERIA.filter(({ recorded }) => recorded === kind),
);

/**
 * Removes injections, as far as they are there as the policies wrote them; parents that are empty then are removed, too, as they came
 * with it. Those of several policies are removed at once.
 */
export function removeInjections(draft: Draft, origins: readonly Origin[], spec: Path): void {
  for (const criterion of REMOVAL) criterion.remove(draft, origins, spec);
}
