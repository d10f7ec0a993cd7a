import { z } from "zod";
import { NETWORK_POLICY } from "../../../src/cli/configuration/configuration.ts";
import { at, type Json, type JsonObject } from "../../../src/core/json.ts";
import {
  affinity,
  labelMap,
  toleration,
  topologySpreadConstraint,
} from "../../../src/core/kubernetes/schemas.ts";

import { monitoringValues } from "./monitoring.ts";

/** A value of the chart. */
export interface Value {
  /** `image.tag` */
  readonly path: string;
  readonly about: string;
  readonly schema: JsonObject;
  readonly otherwise: Json;
}

const TEXT = { type: "string" };
const FLAG = { type: "boolean" };
const PORT = { type: "integer", minimum: 1, maximum: 65_535 };
const TEXTS = { type: "object", additionalProperties: { type: "string" } };

/** Every value of the chart. Defaults of registered objects are read from registration. */
export function allValues(
  objects: ReadonlyMap<string, JsonObject>,
  configuration: JsonObject,
  policy: JsonObject,
): Value[] {
  const deployment = objects.get("Deployment usher");
  const pods = (...path: string[]): Json => at(deployment, "spec", "template", "spec", ...path) ?? null;
  const container = (field: string): Json => at(pods("containers"), 0, field) ?? null;
  const image = String(container("image"));
  const value = (path: string, otherwise: Json, schema: JsonObject, about: string): Value => ({
    path,
    otherwise,
    schema,
    about,
  });
  return [
    value(
      "image.registry",
      "",
      TEXT,
      "Registry of the image, such as `registry.example.com`. Empty: as the container runtime resolves the repository.",
    ),
    value(
      "image.repository",
      image.replace(/:.*$/, ""),
      { ...TEXT, minLength: 1 },
      "Repository of the image in the registry.",
    ),
    value("image.tag", "", TEXT, "Tag of the image. Empty: the chart's appVersion."),
    value(
      "image.digest",
      "",
      { ...TEXT, pattern: "^(sha256:[0-9a-f]{64})?$" },
      "Digest of the image, `sha256:…`; takes the place of the tag.",
    ),
    value(
      "image.pullPolicy",
      "",
      { enum: ["", "Always", "IfNotPresent", "Never"] },
      "Pull policy. Empty: the cluster's default.",
    ),
    value(
      "image.pullSecrets",
      [],
      list(strict({ name: TEXT }, ["name"])),
      "Secrets to pull the image with, each as `name: SECRET`.",
    ),
    value(
      "replicas",
      at(deployment, "spec", "replicas") ?? null,
      { type: ["integer", "null"], minimum: 0 },
      "Number of replicas. null: the field is not rendered, and whatever scales the Deployment decides.",
    ),
    value("resources", container("resources"), RESOURCES, "Requests and limits of the replicas."),
    value(
      "watchdog.resources",
      at(
        objects.get("Deployment usher-watchdog"),
        "spec",
        "template",
        "spec",
        "containers",
        0,
        "resources",
      ) ?? null,
      RESOURCES,
      "Requests and limits of the watchdog; its settings are in `configuration.watchdog`.",
    ),
    value("nodeSelector", {}, shape(labelMap), "Labels of the nodes that usher's pods may run on."),
    value(
      "tolerations",
      [],
      list(shape(toleration)),
      "Tolerations of usher's pods, beside those for taints that usher itself sets.",
    ),
    value(
      "controlPlaneNodes",
      false,
      FLAG,
      "Runs usher's pods on nodes of the control plane, and only there: a node selector and tolerations for them.",
    ),
    value("affinity", {}, shape(affinity), "Affinity of usher's pods."),
    value(
      "topologySpreadConstraints",
      pods("topologySpreadConstraints"),
      list(shape(topologySpreadConstraint)),
      "How the replicas are spread over nodes and zones.",
    ),
    value(
      "priorityClassName",
      pods("priorityClassName"),
      { type: ["string", "null"] },
      "Priority class of usher's pods. null: none.",
    ),
    value(
      "podSecurityContext",
      pods("securityContext"),
      POD_SECURITY,
      "Security context of usher's pods. It names no user: the image has one, 65532, and OpenShift chooses another. A field that is null is removed.",
    ),
    value(
      "securityContext",
      container("securityContext"),
      CONTAINER_SECURITY,
      "Security context of usher's containers. A field that is null is removed.",
    ),
    value(
      "extraEnv",
      [],
      list(named({ value: {}, valueFrom: {} })),
      "More environment variables of usher's containers.",
    ),
    value("extraArgs", [], list(TEXT), "More arguments of `usher serve`."),
    value(
      "extraVolumes",
      [],
      list({ type: "object", required: ["name"], properties: { name: TEXT } }),
      "More volumes of usher's pods.",
    ),
    value(
      "extraVolumeMounts",
      [],
      list({ type: "object", required: ["name", "mountPath"], properties: { name: TEXT, mountPath: TEXT } }),
      "More volume mounts of usher's containers.",
    ),
    value("labels", {}, TEXTS, "Labels of every object and pod."),
    value("annotations", {}, TEXTS, "Annotations of every object."),
    value("podLabels", {}, TEXTS, "Labels of usher's pods."),
    value("podAnnotations", {}, TEXTS, "Annotations of usher's pods."),
    value(
      "webhook.port",
      8443,
      PORT,
      "Port on which the replicas serve the API server. Private GKE clusters let the control plane reach 443 and 10250 only: set 10250, or open 8443 in the firewall.",
    ),
    value(
      "webhook.serviceAnnotations",
      {},
      TEXTS,
      "Annotations of the Service that the API server calls, such as those by which a network policy is made for it.",
    ),
    value("ops.port", 8080, PORT, "Port of health checks and metrics."),
    value(
      "hostNetwork",
      false,
      FLAG,
      "Runs the replicas on the network of their nodes, for clusters whose control plane can't reach pods, such as EKS with another CNI. A replica then stops before its successor starts, because both need the ports.",
    ),
    value(
      "networkPolicy.enabled",
      false,
      FLAG,
      "A NetworkPolicy for usher's pods: the webhook port, the ops port and all that they connect to. It has no effect with `hostNetwork`.",
    ),
    value(
      "networkPolicy.webhookCidrs",
      [],
      shape(NETWORK_POLICY.shape.webhookCidrs.unwrap()),
      "Networks from which API servers reach the webhook port. Empty: all.",
    ),
    value(
      "flowControl.enabled",
      true,
      FLAG,
      "Gives usher a priority level of its own at the API server. Set to false where `flowcontrol.apiserver.k8s.io/v1` is not served.",
    ),
    ...monitoringValues(),
    value(
      "crds.manage",
      true,
      FLAG,
      "Lets usher and the chart's hooks update CRDs. If false, neither has a right to them: apply the folder `crds` of the chart before each upgrade.",
    ),
    value(
      "configuration",
      {},
      configuration,
      "The spec of the UsherConfiguration, as the replicas read it. `namespace` and `manageCrds` follow from the release and `crds.manage`.",
    ),
    value(
      "policies",
      [],
      list(policy),
      "Policies to create with the release, as whole objects. They stay when they are removed from this list, and when the release is uninstalled.",
    ),
  ];
}

function list(items: JsonObject): JsonObject {
  return { type: "array", items };
}

function strict(properties: JsonObject, required: readonly string[] = []): JsonObject {
  return {
    type: "object",
    additionalProperties: false,
    properties,
    ...(required.length === 0 ? {} : { required: [...required] }),
  };
}

function named(properties: JsonObject): JsonObject {
  return strict({ name: TEXT, ...properties }, ["name"]);
}

/** The JSON schema of one of Kubernetes' own types. */
function shape(schema: z.ZodType): JsonObject {
  const { $schema: _draft, ...rest } = z.toJSONSchema(schema, {
    target: "draft-7",
    io: "input",
    unrepresentable: "any",
  });
  return rest as JsonObject;
}

const QUANTITIES = { type: "object", additionalProperties: { type: ["string", "number"] } };
const RESOURCES = strict({
  requests: QUANTITIES,
  limits: QUANTITIES,
  claims: list(strict({ name: TEXT, request: TEXT }, ["name"])),
});

/** A context with these fields, each of which may be null. */
function context(fields: JsonObject): JsonObject {
  return strict(
    Object.fromEntries(
      Object.entries(fields).map(([field, schema]) => [field, { anyOf: [schema as Json, { type: "null" }] }]),
    ),
  );
}

const NUMBER = { type: "integer", minimum: 0 };
const SELINUX = strict({ level: TEXT, role: TEXT, type: TEXT, user: TEXT });
const PROFILE = strict({ type: TEXT, localhostProfile: TEXT }, ["type"]);
const WINDOWS = strict({
  gmsaCredentialSpec: TEXT,
  gmsaCredentialSpecName: TEXT,
  hostProcess: FLAG,
  runAsUserName: TEXT,
});
const USER = {
  runAsUser: NUMBER,
  runAsGroup: NUMBER,
  runAsNonRoot: FLAG,
  seccompProfile: PROFILE,
  appArmorProfile: PROFILE,
  seLinuxOptions: SELINUX,
  windowsOptions: WINDOWS,
};
const POD_SECURITY = context({
  ...USER,
  fsGroup: NUMBER,
  fsGroupChangePolicy: TEXT,
  seLinuxChangePolicy: TEXT,
  supplementalGroups: list(NUMBER),
  supplementalGroupsPolicy: TEXT,
  sysctls: list(named({ value: TEXT })),
});
const CONTAINER_SECURITY = context({
  ...USER,
  allowPrivilegeEscalation: FLAG,
  capabilities: strict({ add: list(TEXT), drop: list(TEXT) }),
  privileged: FLAG,
  procMount: TEXT,
  readOnlyRootFilesystem: FLAG,
});
