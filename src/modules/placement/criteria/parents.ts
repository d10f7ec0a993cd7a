import { affinity } from "../../../core/kubernetes/schemas.ts";

/** The objects that hold several criteria, with their descriptions. */
export const PARENTS: Readonly<Record<string, string>> = {
  affinity:
    "Node affinity, pod affinity and pod anti-affinity to add to the pod. Required node affinity must hold in addition to the pod's.",
  ...Object.fromEntries(
    Object.entries(affinity.shape).map(([name, schema]) => [`affinity.${name}`, schema.description ?? ""]),
  ),
};
