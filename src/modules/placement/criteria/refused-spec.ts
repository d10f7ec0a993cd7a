import type { JsonObject } from "../../../core/json.ts";

const REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution";

/** Only usher refuses it: a CRD can't compare two lists of one term. */
export const REFUSED_SPEC: JsonObject = {
  podSelector: {},
  affinity: {
    podAffinity: {
      [REQUIRED]: [
        { topologyKey: "zone", labelSelector: {}, matchLabelKeys: ["app"], mismatchLabelKeys: ["app"] },
      ],
    },
  },
};
