import { type JsonObject, listAt } from "../../json.ts";
import { type Filter, SKIPS, unknown } from "../filter.ts";

/** Resource claims are not simulated. */
export const DYNAMIC_RESOURCES: Filter = {
  name: "DynamicResources",
  forPod: (pod: JsonObject) =>
    listAt(pod, "spec", "resourceClaims").length === 0
      ? SKIPS
      : unknown("DynamicResources", "the devices that resource claims could get are not known"),
};
