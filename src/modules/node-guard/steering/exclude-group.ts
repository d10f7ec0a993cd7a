import type { Draft } from "../../../core/evaluate/draft.ts";
import type { Finding } from "../../../core/evaluate/finding.ts";
import type { JsonObject } from "../../../core/json.ts";
import type { Path } from "../../../core/path.ts";
import type { View } from "../../../core/view/view.ts";
import { possibleGroups } from "../claims/selection.ts";
import type { Group } from "../groups/group.ts";
import { withoutTolerations } from "./drop-tolerations.ts";
import { excludeSelector } from "./exclude.ts";
import { REQUIRED_TERMS, termsOf } from "./terms.ts";

export interface Exclusion {
  readonly view: View;
  /** The template as it is stored: what it tolerates stays. */
  readonly stored?: JsonObject | undefined;
  /** False: no affinity is added, whatever is still tolerated. */
  readonly affinity: boolean;
  readonly finding: (what: "tolerations" | "affinity", path: Path) => Finding | undefined;
}

/** Keeps pods with this spec off the nodes of a group, in the way of the group's steering. */
export function excludeGroup(
  object: Draft,
  spec: Path,
  group: Group,
  { view, stored, affinity, finding }: Exclusion,
): "done" | "too many terms" {
  if (group.steering === "DropToleration") {
    const rest = withoutTolerations(object.get(...spec), stored, group, view);
    const path = [...spec, "tolerations"];
    if (rest !== "unchanged") object.set(path, rest, finding("tolerations", path));
    if (possibleGroups(object.get(...spec), [group], view).length === 0) return "done";
  }
  if (!affinity) return "done";
  const path = [...spec, ...REQUIRED_TERMS];
  const terms = excludeSelector(termsOf(object.get(...spec)), group.labelSelector);
  if (terms === "unchanged") return "done";
  return terms !== "too many" && object.set(path, terms, finding("affinity", path))
    ? "done"
    : "too many terms";
}
