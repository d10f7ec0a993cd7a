import type { Assembly } from "../../../core/evaluate/assembly.ts";
import type { Standing } from "../../../core/module/standing.ts";
import { unenforcedBecause } from "../policy/enforced.ts";
import { limitsIn } from "../policy/stored.ts";
import { subjectUsages } from "./subject-usage.ts";

/** The users that have more projects than they may. */
export function standing({ view }: Assembly): Standing[] {
  const limits = limitsIn(view);
  if (limits === undefined || unenforcedBecause(limits, view) !== undefined) return [];
  return subjectUsages(view, limits)
    .filter(({ state }) => state === "over")
    .map(({ subject, count, max, rule = "" }) => ({
      object: { kind: "User", name: subject },
      changes: [],
      holds: [],
      violation: `${count} projects, at most ${max} (${rule})`,
    }));
}
