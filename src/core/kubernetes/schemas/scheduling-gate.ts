import { z } from "zod";
import { KEY_LENGTH, LABEL_KEY_PATTERN, MAX_NAMES } from "./bounds.ts";

const schedulingGate = z
  .strictObject({
    name: z.string().min(1).max(KEY_LENGTH).meta({
      description:
        "Name of the gate, in the form of a label key. The controller that opens the gate removes it by this name.",
      pattern: LABEL_KEY_PATTERN,
    }),
  })
  .describe("A gate that must be removed before the pod is scheduled.");

/** As in a pod: each name once. */
export const schedulingGates = z
  .array(schedulingGate)
  .max(MAX_NAMES)
  .meta({ "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"] });
