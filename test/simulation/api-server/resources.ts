import { at, isObject, type Json, type JsonObject, listAt, stringAt } from "../../../src/core/json.ts";
import type { Store } from "./store.ts";

/** How lists and maps of a kind are merged by server-side apply: a list by keys, as a set, or as one value. */
export type Shape = (path: readonly string[]) => "atomic" | "set" | "granular" | readonly string[];

/** A kind of object as the API server serves it. */
export interface Resource {
  readonly group: string;
  readonly version: string;
  /** The plural. */
  readonly resource: string;
  readonly kind: string;
  readonly namespaced: boolean;
  readonly status: boolean;
  /** Whether metadata.generation counts the changes of everything but metadata and status. */
  readonly generation: boolean;
  /** Whether a PUT without resourceVersion is accepted. */
  readonly unconditionalUpdate: boolean;
  /** Whether a PUT creates an object that does not exist. */
  readonly createOnUpdate: boolean;
  readonly custom: boolean;
  readonly shape: Shape;
  /** Removes unknown fields and sets defaults, by the schema of a CustomResourceDefinition. */
  readonly prune: (object: JsonObject) => JsonObject;
  /** All versions that are served, for webhooks with matchPolicy Equivalent. */
  readonly versions: readonly string[];
}

/** `pods`, `deployments.apps`: the name of the collection in the store. */
export function storedName({ group, resource }: Pick<Resource, "group" | "resource">): string {
  return group === "" ? resource : `${resource}.${group}`;
}

/**
 * Kubernetes' own resources: the plural, and the kind with its marks. `n`: namespaced, `s`: has a status subresource,
 * `g`: counts generations, `u`: a PUT needs no resourceVersion, `c`: a PUT creates.
 */
const BUILT_IN: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  v1: {
    bindings: "Binding n",
    configmaps: "ConfigMap nu",
    endpoints: "Endpoints nuc",
    limitranges: "LimitRange nuc",
    namespaces: "Namespace su",
    nodes: "Node su",
    persistentvolumeclaims: "PersistentVolumeClaim nsu",
    persistentvolumes: "PersistentVolume su",
    pods: "Pod nsgu",
    podtemplates: "PodTemplate nu",
    replicationcontrollers: "ReplicationController nsgu",
    resourcequotas: "ResourceQuota nsu",
    secrets: "Secret nu",
    serviceaccounts: "ServiceAccount nu",
    services: "Service nsuc",
  },
  "admissionregistration.k8s.io/v1": {
    mutatingadmissionpolicies: "MutatingAdmissionPolicy g",
    mutatingadmissionpolicybindings: "MutatingAdmissionPolicyBinding g",
    mutatingwebhookconfigurations: "MutatingWebhookConfiguration g",
    validatingadmissionpolicies: "ValidatingAdmissionPolicy sg",
    validatingadmissionpolicybindings: "ValidatingAdmissionPolicyBinding g",
    validatingwebhookconfigurations: "ValidatingWebhookConfiguration g",
  },
  "apiextensions.k8s.io/v1": { customresourcedefinitions: "CustomResourceDefinition sg" },
  "apiregistration.k8s.io/v1": { apiservices: "APIService s" },
  "apps/v1": {
    controllerrevisions: "ControllerRevision nu",
    daemonsets: "DaemonSet nsgu",
    deployments: "Deployment nsgu",
    replicasets: "ReplicaSet nsgu",
    statefulsets: "StatefulSet nsgu",
  },
  "batch/v1": { cronjobs: "CronJob nsgu", jobs: "Job nsgu" },
  "certificates.k8s.io/v1": { certificatesigningrequests: "CertificateSigningRequest sg" },
  "coordination.k8s.io/v1": { leases: "Lease nc" },
  "discovery.k8s.io/v1": { endpointslices: "EndpointSlice ngu" },
  "events.k8s.io/v1": { events: "Event nuc" },
  "flowcontrol.apiserver.k8s.io/v1": {
    flowschemas: "FlowSchema sg",
    prioritylevelconfigurations: "PriorityLevelConfiguration sg",
  },
  "networking.k8s.io/v1": { networkpolicies: "NetworkPolicy ngu", ingresses: "Ingress nsgu" },
  "node.k8s.io/v1": { runtimeclasses: "RuntimeClass u" },
  "policy/v1": { poddisruptionbudgets: "PodDisruptionBudget nsg" },
  "rbac.authorization.k8s.io/v1": {
    clusterrolebindings: "ClusterRoleBinding uc",
    clusterroles: "ClusterRole uc",
    rolebindings: "RoleBinding nuc",
    roles: "Role nuc",
  },
  "scheduling.k8s.io/v1": { priorityclasses: "PriorityClass gu" },
  "storage.k8s.io/v1": {
    csidrivers: "CSIDriver",
    csinodes: "CSINode",
    csistoragecapacities: "CSIStorageCapacity nu",
    storageclasses: "StorageClass u",
    volumeattachments: "VolumeAttachment s",
  },
};

/** Lists of Kubernetes' own kinds by the last names of their path. Others are replaced as a whole. */
const LISTS: readonly (readonly [RegExp, readonly string[] | "set"])[] = [
  [/^metadata\.finalizers$/, "set"],
  [/^metadata\.ownerReferences$/, ["uid"]],
  [/^spec\.finalizers$/, "set"],
  [/^status\.(conditions|addresses)$/, ["type"]],
  [/^webhooks$/, ["name"]],
  [/(^|\.)matchConditions$/, ["name"]],
  [
    /\.(containers|initContainers|ephemeralContainers|volumes|imagePullSecrets|env|resourceClaims)$/,
    ["name"],
  ],
  [/^(imagePullSecrets|secrets)$/, ["name"]],
  [/[cC]ontainers\..*\.ports$/, ["containerPort", "protocol"]],
  [/^spec\.ports$/, ["port", "protocol"]],
  [/\.volumeMounts$/, ["mountPath"]],
  [/\.volumeDevices$/, ["devicePath"]],
  [/\.topologySpreadConstraints$/, ["topologyKey", "whenUnsatisfiable"]],
  [/\.hostAliases$/, ["ip"]],
  [/\.schedulingGates$/, ["name"]],
];

/** Maps that are one value: selectors and references. */
const ATOMIC_MAP =
  /(^|\.)(selector|nodeSelector|labelSelector|namespaceSelector|objectSelector|podSelector|roleRef|configMapKeyRef|secretKeyRef|fieldRef|resourceFieldRef|nodeSelectorTerms)$|^metadata\.ownerReferences\.\*$/;

const builtInShape: Shape = (path) => {
  const text = path.join(".");
  const [, type] = LISTS.find(([pattern]) => pattern.test(text)) ?? [];
  return type ?? (ATOMIC_MAP.test(text) ? "atomic" : "granular");
};

const builtIns: readonly Resource[] = Object.entries(BUILT_IN).flatMap(([apiVersion, kinds]) => {
  const [version = "", group = ""] = apiVersion.split("/").reverse();
  return Object.entries(kinds).map(([resource, text]) => {
    const [kind = "", marks = ""] = text.split(" ");
    return {
      group,
      version,
      resource,
      kind,
      namespaced: marks.includes("n"),
      status: marks.includes("s"),
      generation: marks.includes("g"),
      unconditionalUpdate: marks.includes("u"),
      createOnUpdate: marks.includes("c"),
      custom: false,
      shape: builtInShape,
      prune: (object: JsonObject) => object,
      versions: [version],
    };
  });
});

/** The resources that a server serves: Kubernetes' own, and those of CustomResourceDefinitions that are established. */
export function servedResources(store: Store, revision: number): readonly Resource[] {
  const custom = store.list("customresourcedefinitions.apiextensions.k8s.io", revision);
  return [...builtIns, ...custom.flatMap(({ object }) => customResources(object))];
}

function customResources(crd: JsonObject): Resource[] {
  const established = listAt(crd, "status", "conditions").some(
    (one) => stringAt(one, "type") === "Established" && stringAt(one, "status") === "True",
  );
  const group = stringAt(crd, "spec", "group") ?? "";
  const resource = stringAt(crd, "spec", "names", "plural") ?? "";
  const kind = stringAt(crd, "spec", "names", "kind") ?? "";
  if (!established) return [];
  const served = listAt(crd, "spec", "versions").filter((one) => at(one, "served") === true);
  const versions = served.map((one) => stringAt(one, "name") ?? "");
  return served.map((one) => {
    const schema = at(one, "schema", "openAPIV3Schema");
    return {
      group,
      version: stringAt(one, "name") ?? "",
      resource,
      kind,
      namespaced: stringAt(crd, "spec", "scope") === "Namespaced",
      status: isObject(at(one, "subresources", "status")),
      generation: true,
      unconditionalUpdate: false,
      createOnUpdate: false,
      custom: true,
      shape: (path) => (path[0] === "metadata" ? builtInShape(path) : shapeIn(schema, path)),
      prune: (object) => ({
        ...(pruned(object, schema, true) as JsonObject),
        metadata: object["metadata"],
      }),
      versions,
    };
  });
}

/** Elements of lists have a path element of their own. */
function shapeIn(schema: Json | undefined, path: readonly string[]): ReturnType<Shape> {
  let place = schema;
  for (const name of path) {
    place = at(place, "properties", name) ?? at(place, "items") ?? at(place, "additionalProperties");
  }
  const list = stringAt(place, "x-kubernetes-list-type");
  if (list === "set") return "set";
  if (list === "map") return listAt(place, "x-kubernetes-list-map-keys").map(String);
  return stringAt(place, "x-kubernetes-map-type") === "atomic" ? "atomic" : "granular";
}

function pruned(value: Json | undefined, schema: Json | undefined, root = false): Json | undefined {
  if (Array.isArray(value)) return value.map((item) => pruned(item, at(schema, "items")) ?? null);
  if (!isObject(value)) return value;
  const properties = at(schema, "properties");
  const others = at(schema, "additionalProperties");
  const keeps = at(schema, "x-kubernetes-preserve-unknown-fields") === true;
  const kept: Record<string, Json> = {};
  for (const [name, one] of Object.entries(value)) {
    if (one === undefined) continue;
    const known = at(properties, name) ?? (others === true ? {} : others);
    const isType = root && ["apiVersion", "kind", "metadata"].includes(name);
    if (isType || keeps || known !== undefined)
      kept[name] = isType || known === undefined ? one : (pruned(one, known) ?? null);
  }
  for (const [name, property] of Object.entries(isObject(properties) ? properties : {})) {
    const initial = at(property, "default");
    if (kept[name] === undefined && initial !== undefined) kept[name] = pruned(initial, property) ?? null;
  }
  return kept;
}
