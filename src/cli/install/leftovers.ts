import { nameOf } from "../../core/kubernetes/object.ts";
import { describeObject } from "../../operator/install/apply.ts";
import type { Marked, StillMarked } from "../../operator/uninstall/cleanup.ts";
import type { FoundLeftovers } from "../../operator/uninstall/leftovers.ts";
import type { Removal } from "../../operator/uninstall/uninstall-plan.ts";
import { EXIT } from "../exit.ts";
import { printable, type Terminal } from "../output/terminal.ts";

/** A row for each object that is deleted, stays or is freed. */
export function removalRows(removals: readonly Removal[], marked: readonly Marked[]): string[][] {
  return [
    ...removals.map(({ live, change, note }) => [describeObject(live), change, printable(note ?? "")]),
    ...marked.map(({ live, cleanup }) => [describeObject(live), "free", `without ${cleanup.what}`]),
  ];
}

/** A row for each object that is freed or deleted. */
export function leftoverRows({ marked, objects }: FoundLeftovers): string[][] {
  return [
    ...removalRows([], marked),
    ...objects.map((object) => [describeObject(object), "delete", "of what is off"]),
  ];
}

/** Prints objects that may still be marked, and how to clean them up. */
export function reportMarked(still: readonly StillMarked[], screen: Terminal): number {
  for (const { live, cleanup, why } of still) {
    const which =
      live === undefined ? `${cleanup.resource} may still have` : `${describeObject(live)} still has`;
    screen.complain(printable(`${which} ${cleanup.what}: ${why}`));
    screen.complain(`remove it with: ${cleanup.byHand(live === undefined ? "--all" : nameOf(live))}`);
  }
  return still.length === 0 ? EXIT.fine : EXIT.failed;
}
