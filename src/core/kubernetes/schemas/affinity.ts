import { z } from "zod";
import { nodeAffinity } from "./node-affinity.ts";
import { podAffinity, podAntiAffinity } from "./pod-affinity.ts";

export const affinity = z
  .strictObject({
    nodeAffinity: nodeAffinity.nullish().describe("Which nodes a pod may or should run on."),
    podAffinity: podAffinity.nullish().describe("Draws a pod to places where certain other pods run."),
    podAntiAffinity: podAntiAffinity
      .nullish()
      .describe("Keeps a pod away from places where certain other pods run."),
  })
  .describe("Where a pod may or should run: by nodes, and by the pods that run there already.");
