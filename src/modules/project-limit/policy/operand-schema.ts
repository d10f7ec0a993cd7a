import { z } from "zod";
import {
  celRules,
  KEY_LENGTH,
  LABEL_KEY_PATTERN,
  LABEL_LENGTH,
  LABEL_VALUE_PATTERN,
} from "../../../core/kubernetes/schemas/bounds.ts";

/** Labels of one map. With the rules, it bounds the cost of the API server's own check of the keys. */
const MAX_PAIRS = 64;

/** Labels with their values. `what` names them in errors. */
export function labels(what: string, description: string) {
  return z
    .record(z.string(), z.string().max(LABEL_LENGTH).meta({ pattern: LABEL_VALUE_PATTERN }))
    .refine((pairs) => Object.keys(pairs).length <= MAX_PAIRS, {
      error: `has too many entries: at most ${MAX_PAIRS} labels are allowed`,
    })
    .nullish()
    .meta({
      description,
      maxProperties: MAX_PAIRS,
      "x-kubernetes-map-type": "atomic",
      ...celRules({
        rule: `self.all(key, key.size() <= ${KEY_LENGTH} && key.matches('${LABEL_KEY_PATTERN}'))`,
        message: `${what} has a key that is not a label key`,
      }),
    });
}

/** The fields of a ProjectRequestLimit that configure its operand. Usher itself and the operand's file do not use them. */
export const OPERAND_FIELDS = {
  transport: z
    .enum(["Direct", "Aggregated"])
    .nullish()
    .describe(
      "How API servers reach the operand. Direct: by its Service. Aggregated: by the API server kubernetes in default, as an aggregated API. For the operator; defaults to Aggregated where OpenShift's API server serves ProjectRequests, else to Direct.",
    ),
  topology: z
    .enum(["DaemonSet", "Deployment"])
    .nullish()
    .describe(
      "What runs the operand: a pod on each node of nodeSelector, or two pods on any of them. For the operator; defaults to DaemonSet.",
    ),
  nodeSelector: labels(
    "nodeSelector",
    "Labels of the nodes that the operand runs on. For the operator; defaults to those of the control plane.",
  ),
  podLabels: labels("podLabels", "More labels for the operand's pods. For the operator."),
  certificates: z
    .enum(["ServiceCA", "CertManager", "Own"])
    .nullish()
    .describe(
      "Who makes the operand's serving certificate: OpenShift's service CA, cert-manager or the operator. For the operator; defaults to ServiceCA.",
    ),
};
