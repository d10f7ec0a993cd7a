import { setImmediate as nextTurn } from "node:timers/promises";
import { TimeSlices } from "../../core/time-slices.ts";

/** The time slices of reading and checking files: requests are served between them. */
export function fileSlices(): TimeSlices {
  return new TimeSlices({ clock: () => performance.now(), turn: nextTurn });
}
