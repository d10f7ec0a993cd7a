import { at, isObject, type JsonObject, stringAt } from "../../json.ts";
import { type Filter, SKIPS, unknown } from "../filter.ts";
import type { PreparedWorld } from "../prepared-world.ts";

const DEFAULT_SCHEDULER = "default-scheduler";

/** Pods that the default profile does not schedule alone: those of another scheduler, and members of a group. */
export const SCHEDULER: Filter = {
  name: "Scheduler",
  forPod: (pod: JsonObject, { world }: PreparedWorld) => {
    const written = stringAt(pod, "spec", "schedulerName") ?? "";
    const name = written === "" ? DEFAULT_SCHEDULER : written;
    if (name !== (world.schedulerName ?? DEFAULT_SCHEDULER))
      return unknown("Scheduler", `the scheduler ${name} decides, and its configuration is not known`);
    for (const field of ["schedulingGroup", "workloadRef"])
      if (isObject(at(pod, "spec", field)))
        return unknown("Scheduler", "the pod is scheduled together with its group");
    return SKIPS;
  },
};
