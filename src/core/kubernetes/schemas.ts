/**
 * The pieces of Kubernetes' own types that policies embed, as zod schemas: one source of the TypeScript type, of the CRD and of
 * the check offline. They say the shape only. What the API server checks beyond it (label syntax, values that an operator
 * needs) the semantics beside this file say, so that one place knows each rule. `null` is taken for absent, as the API
 * server takes it.
 */
export { affinity } from "./schemas/affinity.ts";
export { nodeAffinity } from "./schemas/node-affinity.ts";
export { podAffinity, podAntiAffinity } from "./schemas/pod-affinity.ts";
export { schedulingGates } from "./schemas/scheduling-gate.ts";
export { labelMap, labelSelector } from "./schemas/selector.ts";
export { toleration } from "./schemas/toleration.ts";
export { topologySpreadConstraint, topologySpreadConstraints } from "./schemas/topology-spread.ts";
