import type { JsonObject } from "../../json.ts";
import type { Installation } from "../../module/installation.ts";
import { OWN_NAMES } from "../names.ts";

/**
 * Parts of every pod of usher's, which fits the Pod Security level `restricted`. It names no user: the image has one that is not root, and
 * OpenShift gives each namespace users of its own and refuses a pod that names another.
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
 * Where pods of usher's run: on any node, or on those of the control plane. By default they tolerate no taint of the control plane: those
 * nodes are what usher keeps work off, and it need not be there, since nothing that a cluster needs to begin waits for it.
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
