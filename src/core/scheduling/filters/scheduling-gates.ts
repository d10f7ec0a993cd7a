import { type Json, type JsonObject, listAt, stringAt } from "../../json.ts";
import { type Filter, SKIPS, unresolvable } from "../filter.ts";

/** Keeps a pod out of the queue, so that no later filter runs. */
export const SCHEDULING_GATES: Filter = {
  name: "SchedulingGates",
  forPod: (pod: JsonObject) => {
    const gates = listAt(pod, "spec", "schedulingGates").map((gate: Json) => stringAt(gate, "name") ?? "");
    if (gates.length === 0) return SKIPS;
    return unresolvable("SchedulingGates", `waiting for scheduling gates: [${gates.join(" ")}]`);
  },
};
