/**
 * The parts of Kubernetes' own types that policies embed, as zod schemas: one source of the TypeScript type, of the CRD
 * and of the offline check. They define only the shape. The functions beside this file check the API server's further
 * rules (label syntax, values that an operator needs), so that each rule is in one place. `null` counts as absent, as
 * in the API server.
 */
export { affinity } from "./schemas/affinity.ts";
export { nodeAffinity } from "./schemas/node-affinity.ts";
export { podAffinity, podAntiAffinity } from "./schemas/pod-affinity.ts";
export { schedulingGates } from "./schemas/scheduling-gate.ts";
export { labelMap, labelSelector } from "./schemas/selector.ts";
export { toleration } from "./schemas/toleration.ts";
export { topologySpreadConstraint, topologySpreadConstraints } from "./schemas/topology-spread.ts";
