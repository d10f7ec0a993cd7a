const NAME = "project-request-limit-admission";
const FOLDER = "/etc/projectrequestlimit";
const PREFIX = "projectrequestlimits.operator.project.openshift.io";
const GROUP = "projectrequestlimits.admission.project.openshift.io";

/** The names of the operand and its objects. There is one in a cluster, so the names are fixed. */
export const OPERAND = {
  namespace: "openshift-project-request-limit-operator",
  /** The DaemonSet or Deployment, its container, ServiceAccount, Lease, roles, priority level and flow schema. */
  name: NAME,
  program: `/usr/bin/${NAME}`,
  /** The environment variable with the path of the configuration. */
  configurationVariable: "CONFIGURATION_PATH",
  configurationFolder: `${FOLDER}/config`,
  /** The key of the ConfigMap, mounted by subPath. */
  configurationKey: "limits.yaml",
  configurationFile: `${FOLDER}/config/limits.yaml`,
  configurationVolume: "configuration",
  configMap: "project-request-limit-configuration",
  /** The current form of the file; older forms are read too. */
  configurationApiVersion: "operator.project.openshift.io/v1",
  configurationKind: "ProjectRequestLimitConfig",
  service: "admission-server",
  servicePort: 443,
  port: 8443,
  /** Health and metrics. */
  opsPort: 8080,
  /** On the pods, and the selector of the Service. */
  podLabels: { [`${PREFIX}/admission-server`]: "true" },
  servingSecret: "server-serving-cert",
  certificateVolume: "serving-cert",
  /** Contains tls.crt and tls.key of the Secret, which the kubelet refreshes. */
  certificateFolder: `${FOLDER}/serving-cert`,
  configurationHash: `${PREFIX}/configuration.hash`,
  certificateHash: `${PREFIX}/cert.hash`,
  /** Contains the tokens of the webhook's path; the operator writes it, the operand reads it through the API. */
  pathsSecret: `${NAME}-paths`,
  pathsKey: "webhook-paths.json",
  apiGroup: GROUP,
  apiVersion: "v1",
  /** The variable that makes the operand serve the aggregated API, if its value is Aggregated. */
  transportVariable: "TRANSPORT",
  apiService: `v1.${GROUP}`,
  webhook: GROUP,
  /** On the webhook before it is removed, with the time: usher then covers ProjectRequests again. */
  leaving: `${PREFIX}/leaving`,
  reviews: "validatingadmissionreviews",
} as const;

/** The manager of the operand. */
export const OPERATOR = {
  /** Its Deployment, ServiceAccount, roles and Lease. */
  name: "project-request-limit-operator",
  /** The environment variable with the operand's image. */
  imageVariable: "RELATED_IMAGE_PROJECT_REQUEST_LIMIT_ADMISSION",
} as const;
