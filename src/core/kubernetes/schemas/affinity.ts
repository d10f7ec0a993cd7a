import { z } from "zod";
import { nodeAffinity } from "./node-affinity.ts";
import { podAffinity, podAntiAffinity } from "./pod-affinity.ts";

export const affinity = z
  .strictObject({
    nodeAffinity: nodeAffinity.nullish().describe("Which nodes a pod may or should run on."),
    podAffinity: podAffinity
      .nullish()
      .describe("Pod affinity: attracts a pod to topology domains where certain other pods run."),
    podAntiAffinity: podAntiAffinity
      .nullish()
      .describe("Pod anti-affinity: keeps a pod away from topology domains where certain other pods run."),
  })
  .describe("Scheduling constraints: by nodes, and by the pods that already run there.");
