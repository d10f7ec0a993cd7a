import { Gates } from "../../../core/installation/gates.ts";
import { DEFAULT_INSTALLATION } from "../../../core/installation/installation.ts";
import type { JsonObject } from "../../../core/json.ts";
import { certManagerObjects } from "../../../core/registration/certificates.ts";
import { flowControl } from "../../../core/registration/flow-control.ts";
import { roleObjects } from "../../../core/registration/rbac.ts";
import { OPERAND } from "../operand-names.ts";
import { READER_BINDING } from "./aggregated.ts";
import type { LimitOperand } from "./operand.ts";
import { operandRoles } from "./operand-rights.ts";

const { name, namespace } = OPERAND;

/** As a separate installation: so roles, seats and webhooks are built like usher's. */
export const OPERAND_INSTALLATION = { ...DEFAULT_INSTALLATION, namespace };

/** The operand's permissions, and its own seats at the API server: it writes while a request waits for it. */
export function accessObjects(aggregated: boolean): JsonObject[] {
  return [
    { apiVersion: "v1", kind: "ServiceAccount", metadata: { name, namespace } },
    ...roleObjects(operandRoles(aggregated), {
      modules: [],
      installation: OPERAND_INSTALLATION,
      gates: new Gates([]),
    }),
    ...(aggregated ? [READER_BINDING] : []),
    ...flowControl(OPERAND_INSTALLATION, { name, account: name }),
    // Created here so that it is deleted with the custom resource; the operand writes its content.
    { apiVersion: "coordination.k8s.io/v1", kind: "Lease", metadata: { name, namespace } },
  ];
}

/** The annotations for signing: releases before OpenShift 4.4 know only the second. */
const SERVICE_CA = ["service.beta.openshift.io", "service.alpha.openshift.io"];

export function serviceObject({ certificates }: Pick<LimitOperand, "certificates">): JsonObject {
  const annotations = Object.fromEntries(
    SERVICE_CA.map((domain) => [`${domain}/serving-cert-secret-name`, OPERAND.servingSecret]),
  );
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: {
      name: OPERAND.service,
      namespace,
      ...(certificates === "ServiceCA" ? { annotations } : {}),
    },
    spec: {
      selector: OPERAND.podLabels,
      ports: [{ name: "https", port: OPERAND.servicePort, protocol: "TCP", targetPort: OPERAND.port }],
    },
  };
}

function secret(name: string): JsonObject {
  return { apiVersion: "v1", kind: "Secret", metadata: { name, namespace } };
}

export const SERVING_SECRET = secret(OPERAND.servingSecret);

/** They are written by the operator or an issuer, and are in no plan. */
export const SECRETS: readonly JsonObject[] = [SERVING_SECRET, secret(OPERAND.pathsSecret)];

/** The objects from which cert-manager issues the certificate. */
export const CERT_MANAGER_OBJECTS: readonly JsonObject[] = certManagerObjects({
  namespace,
  service: OPERAND.service,
  secret: OPERAND.servingSecret,
  authority: `${name}-ca`,
  selfSigned: `${name}-selfsigned`,
});

export function certificateObjects({
  certificates,
}: Pick<LimitOperand, "certificates">): readonly JsonObject[] {
  return certificates === "CertManager" ? CERT_MANAGER_OBJECTS : [];
}

export function configMap({ configuration }: Pick<LimitOperand, "configuration">): JsonObject {
  return {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: OPERAND.configMap, namespace },
    data: { [OPERAND.configurationKey]: configuration },
  };
}
