import { Gates } from "../installation/gates.ts";
import { DEFAULT_INSTALLATION } from "../installation/installation.ts";
import type { JsonObject } from "../json.ts";
import type { Module } from "../module/module.ts";
import type { Operator } from "../module/operator.ts";
import { customResourceDefinition, customResources } from "./crd.ts";
import { labelled } from "./names.ts";
import {
  CONTAINER_SECURITY,
  criticalPodsQuota,
  fieldVariable,
  POD_SECURITY,
  PRIORITY_CLASS,
  TOKEN_PATH,
} from "./pods/restricted-pod.ts";
import { roleObjects } from "./rbac.ts";

/** On objects that the manifests of an operator install: usher uses such a CRD unchanged, and leaves it to them. */
export const OPERATOR_LABEL = "usher.dev/operator";

interface OperatorOptions {
  readonly image: string;
  /** The image of the operand. @default the operator's own image */
  readonly operandImage?: string;
  readonly version?: string;
}

/**
 * The namespace of operator and operand. OpenShift adds the cluster's default node selector to pods of a namespace
 * without its own selector: one for workers would keep the operand off every control-plane node.
 */
export function operatorNamespace({ namespace }: Pick<Operator, "namespace">): JsonObject {
  const annotations = { "openshift.io/node-selector": "" };
  return { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace, annotations } };
}

/** The objects of a module's operator, in the order of application: beside or without an installation of usher. */
export function operatorObjects(module: Module, operator: Operator, options: OperatorOptions): JsonObject[] {
  const { name, namespace } = operator;
  const installation = { ...DEFAULT_INSTALLATION, namespace };
  const labels = {
    "app.kubernetes.io/name": name,
    "app.kubernetes.io/managed-by": name,
    [OPERATOR_LABEL]: name,
  };
  const objects = [
    operatorNamespace(operator),
    ...customResources([module]).map(customResourceDefinition),
    { apiVersion: "v1", kind: "ServiceAccount", metadata: { name, namespace } },
    ...roleObjects(operator.roles, { modules: [], installation, gates: new Gates([]) }),
    criticalPodsQuota(namespace),
    deployment(module, operator, options),
  ];
  return objects.map((object) => labelled(object, options.version, labels));
}

/** Replaced by a second one, which waits for the Lease of the first. */
function deployment(module: Module, operator: Operator, options: OperatorOptions): JsonObject {
  const { name, namespace } = operator;
  const labels = { "app.kubernetes.io/name": name };
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name, namespace },
    spec: {
      replicas: 1,
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: podSpec(module, operator, options) },
    },
  };
}

function podSpec(
  module: Module,
  operator: Operator,
  { image, operandImage = image }: OperatorOptions,
): JsonObject {
  return {
    serviceAccountName: operator.name,
    priorityClassName: PRIORITY_CLASS,
    securityContext: POD_SECURITY,
    containers: [
      {
        name: operator.name,
        image,
        args: ["operator", module.name],
        env: [
          { name: operator.imageVariable, value: operandImage },
          fieldVariable("POD_NAME", "metadata.name"),
          { name: "NODE_OPTIONS", value: "--max-semi-space-size=1 --max-old-space-size=64" },
          TOKEN_PATH,
        ],
        resources: { requests: { cpu: "10m", memory: "96Mi" }, limits: { memory: "256Mi" } },
        securityContext: CONTAINER_SECURITY,
        volumeMounts: [{ name: "tmp", mountPath: "/tmp" }],
      },
    ],
    volumes: [{ name: "tmp", emptyDir: {} }],
  };
}
