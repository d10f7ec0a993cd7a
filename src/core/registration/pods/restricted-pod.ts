import type { Installation } from "../../installation/installation.ts";
import type { JsonObject } from "../../json.ts";
import { OWN_NAMES } from "../names.ts";

/**
 * Common parts of usher's pods, which pass the Pod Security level `restricted`. They name no user: the image has a
 * non-root one, and OpenShift assigns each namespace a range of users and refuses a pod that names another.
 */
export const POD_SECURITY = {
  runAsNonRoot: true,
  seccompProfile: { type: "RuntimeDefault" },
} as const;

/** Pods of the cluster wait for usher's webhooks, so usher's pods have priority when nodes are full. */
export const PRIORITY_CLASS = "system-cluster-critical";

/**
 * Some clusters, GKE's among them, admit pods of a system priority class only in namespaces with a quota for it. It limits nothing:
 * a quota that could be used up would stop usher.
 */
export function criticalPodsQuota(namespace: string): JsonObject {
  return {
    apiVersion: "v1",
    kind: "ResourceQuota",
    metadata: { name: OWN_NAMES.quota, namespace },
    spec: {
      hard: { pods: "1G" },
      scopeSelector: {
        matchExpressions: [{ scopeName: "PriorityClass", operator: "In", values: [PRIORITY_CLASS] }],
      },
    },
  };
}

const CONTROL_PLANE = "node-role.kubernetes.io/control-plane";

/** The taint that control planes had before Kubernetes 1.24, and some distributions still have. */
const CONTROL_PLANE_BEFORE = "node-role.kubernetes.io/master";

/**
 * Where usher's pods run: on any node, or on control-plane nodes. By default they tolerate no taint of the control
 * plane: usher keeps work off those nodes, and need not be there, because a starting cluster does not wait for it.
 */
export function podPlace(
  { controlPlaneNodes }: Installation,
  own: readonly JsonObject[],
): { readonly nodeSelector?: JsonObject; readonly tolerations?: readonly JsonObject[] } {
  const tolerations = [
    ...own,
    ...(controlPlaneNodes === true ? [CONTROL_PLANE, CONTROL_PLANE_BEFORE] : []).map((key) => ({
      key,
      operator: "Exists",
      effect: "NoSchedule",
    })),
  ];
  return {
    ...(controlPlaneNodes === true ? { nodeSelector: { [CONTROL_PLANE]: "" } } : {}),
    ...(tolerations.length === 0 ? {} : { tolerations }),
  };
}

export const CONTAINER_SECURITY = {
  allowPrivilegeEscalation: false,
  readOnlyRootFilesystem: true,
  capabilities: { drop: ["ALL"] },
} as const;

const FOLDER = "/etc/usher";
export const CONFIGURATION_FILE = "configuration.yaml";

/** The flag, the mount and the volume of the file that usher reads at start. */
export const CONFIGURATION = {
  flag: `--config=${FOLDER}/${CONFIGURATION_FILE}`,
  mount: { name: "configuration", mountPath: FOLDER, readOnly: true },
  volume: { name: "configuration", configMap: { name: OWN_NAMES.configuration } },
} as const;

/** The default path; change it in the Deployment to mount another token. */
export const TOKEN_PATH = {
  name: "USHER_SERVICE_ACCOUNT",
  value: "/var/run/secrets/kubernetes.io/serviceaccount",
} as const;

export function fieldVariable(name: string, fieldPath: string) {
  return { name, valueFrom: { fieldRef: { fieldPath } } } as const;
}
