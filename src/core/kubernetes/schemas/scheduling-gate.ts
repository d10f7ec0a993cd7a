import { z } from "zod";
import { KEY_LENGTH, LABEL_KEY_PATTERN, MAX_NAMES } from "./bounds.ts";

const schedulingGate = z
  .strictObject({
    name: z.string().min(1).max(KEY_LENGTH).meta({
      description: "A name like a label's key. Whoever opens the gate takes it out of the pod by this name.",
      pattern: LABEL_KEY_PATTERN,
    }),
  })
  .describe("Something that must be taken away before the scheduler looks at the pod.");

/** As in a pod: each name once. */
export const schedulingGates = z
  .array(schedulingGate)
  .max(MAX_NAMES)
  .meta({ "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"] });
