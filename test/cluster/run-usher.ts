// For `npm run cluster`: pods with usher's image run for real, so that `usher install` works without a label.
import type { JsonObject } from "../../src/core/json.ts";
import type { Cluster } from "./cluster.ts";
import { RUN_LABEL } from "./runner/label.ts";

const GROUP = "admissionregistration.k8s.io/v1";
const NAME = "run-usher-for-real";

const POLICY: JsonObject = {
  apiVersion: GROUP,
  kind: "MutatingAdmissionPolicy",
  metadata: { name: NAME },
  spec: {
    matchConstraints: {
      resourceRules: [{ apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["pods"] }],
    },
    matchConditions: [
      {
        name: "usher-image",
        expression: "object.spec.containers.exists(one, one.image.matches('(^|/)usher([:@]|$)'))",
      },
    ],
    failurePolicy: "Fail",
    reinvocationPolicy: "Never",
    mutations: [
      {
        patchType: "ApplyConfiguration",
        applyConfiguration: {
          expression: `Object{metadata: Object.metadata{labels: {"${RUN_LABEL}": "true"}}}`,
        },
      },
    ],
  },
};

const BINDING: JsonObject = {
  apiVersion: GROUP,
  kind: "MutatingAdmissionPolicyBinding",
  metadata: { name: NAME },
  spec: { policyName: NAME },
};

/** The command to type: API servers before 1.36 do not serve such policies, so the pods need the label there. */
export async function runUsherForReal(cluster: Cluster): Promise<string> {
  const { status } = await cluster.request("GET", `/apis/${GROUP}/mutatingadmissionpolicies`);
  if (status !== 200) return `usher install --pod-label ${RUN_LABEL}=true`;
  await cluster.apply(POLICY, BINDING);
  return "usher install";
}
