import { OWN_NAMES } from "../names.ts";

/** No user of any image; `restricted` only asks that it is not root. */
const USER = 65_532;

/** Parts of every pod of usher's, which fits the Pod Security level `restricted`. */
export const POD_SECURITY = {
  runAsNonRoot: true,
  runAsUser: USER,
  runAsGroup: USER,
  seccompProfile: { type: "RuntimeDefault" },
} as const;

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
