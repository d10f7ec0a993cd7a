import type { JsonObject } from "../../../core/json.ts";
import type { Operator } from "../../../core/module/operator.ts";
import { projectRequestLimit } from "../kinds.ts";
import { OPERAND, OPERATOR } from "../operand-names.ts";
import { SINGLETON } from "../policy/policy.ts";
import { ignoredObject } from "../status/reconcile-status.ts";
import { API_SERVICE, KUBE_CA, OPENSHIFT_PROJECTS, READER_BINDING } from "./aggregated.ts";
import { accessObjects, CERT_MANAGER_OBJECTS, configMap, SECRETS, serviceObject } from "./objects.ts";
import { certificatesOf, operandOf } from "./operand.ts";
import { operatorRoles } from "./operator-rights.ts";
import { planOperand, publishedBundle } from "./plan.ts";
import { USHER_WEBHOOK, WEBHOOK } from "./webhook.ts";
import { workloadReference } from "./workload.ts";

const WORKLOADS = [workloadReference("DaemonSet"), workloadReference("Deployment")];

/** Everything that the operator writes in any configuration. */
const KEPT: readonly JsonObject[] = [
  ...accessObjects(true),
  API_SERVICE,
  serviceObject({ certificates: "Own" }),
  ...CERT_MANAGER_OBJECTS,
  configMap({ configuration: "" }),
  ...WORKLOADS,
  WEBHOOK,
  ...SECRETS,
];

/** Manages the operand of the ProjectRequestLimit named `cluster`. */
export const operator: Operator = {
  name: OPERATOR.name,
  namespace: OPERAND.namespace,
  imageVariable: OPERATOR.imageVariable,
  resource: {
    apiVersion: `${projectRequestLimit.group}/v1`,
    kind: projectRequestLimit.kind,
    metadata: { name: SINGLETON },
  },
  service: OPERAND.service,
  servingSecret: OPERAND.servingSecret,
  paths: { secret: OPERAND.pathsSecret, key: OPERAND.pathsKey },
  webhook: WEBHOOK,
  observed: [...WORKLOADS, WEBHOOK, USHER_WEBHOOK, API_SERVICE, OPENSHIFT_PROJECTS, READER_BINDING, KUBE_CA],
  isValid: (owner) => operandOf(owner)?.limits.invalid === undefined,
  certificatesOf,
  publishedBundle,
  plan: planOperand,
  ignored: ignoredObject,
  roles: operatorRoles(KEPT),
};
