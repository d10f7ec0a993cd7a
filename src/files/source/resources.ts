import { resourceName } from "../../core/decision/request.ts";
import { type JsonObject, stringAt } from "../../core/json.ts";
import { groupVersionOf } from "../../core/kubernetes/object.ts";
import type { WorkloadKind } from "../../core/kubernetes/workloads.ts";
import type { Module } from "../../core/module/module.ts";
import type { Kind } from "../../core/policy/kind.ts";
import { kindResource } from "../../core/policy/kind.ts";
import { likelyMistake, type Problem } from "../../core/policy/problem.ts";
import { didYouMean } from "../../core/suggest.ts";

/** The resource of a kind. */
export interface Resource {
  /** `deployments.apps` */
  readonly name: string;
  /** `undefined`: unknown; then an object has a namespace if it names one. */
  readonly scope: "Cluster" | "Namespaced" | undefined;
  /** The module's kind, if objects of this resource are policies. */
  readonly policy: Kind | undefined;
}

/** Kinds of a plain API server, and of OpenShift if modules read them. Regular plurals are derived by the rule below. */
const CLUSTER: Readonly<Record<string, string>> = {
  "": "Namespace Node PersistentVolume",
  "admissionregistration.k8s.io":
    "MutatingWebhookConfiguration ValidatingWebhookConfiguration ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding MutatingAdmissionPolicy MutatingAdmissionPolicyBinding",
  "apiextensions.k8s.io": "CustomResourceDefinition",
  "apiregistration.k8s.io": "APIService",
  "certificates.k8s.io": "CertificateSigningRequest ClusterTrustBundle",
  "flowcontrol.apiserver.k8s.io": "FlowSchema PriorityLevelConfiguration",
  "networking.k8s.io": "IngressClass IPAddress ServiceCIDR",
  "node.k8s.io": "RuntimeClass",
  "rbac.authorization.k8s.io": "ClusterRole ClusterRoleBinding",
  "resource.k8s.io": "DeviceClass ResourceSlice",
  "scheduling.k8s.io": "PriorityClass",
  "storage.k8s.io": "StorageClass CSIDriver CSINode VolumeAttachment VolumeAttributesClass",
  "user.openshift.io": "User Group Identity",
  "project.openshift.io": "Project ProjectRequest",
  "config.openshift.io": "ClusterVersion Infrastructure Project Scheduler",
};

const NAMESPACED: Readonly<Record<string, string>> = {
  "": "Pod Service ConfigMap Secret ServiceAccount ReplicationController PodTemplate Endpoints Event LimitRange ResourceQuota PersistentVolumeClaim",
  apps: "Deployment ReplicaSet StatefulSet DaemonSet ControllerRevision",
  batch: "Job CronJob",
  autoscaling: "HorizontalPodAutoscaler",
  "coordination.k8s.io": "Lease",
  "discovery.k8s.io": "EndpointSlice",
  "events.k8s.io": "Event",
  "networking.k8s.io": "Ingress NetworkPolicy",
  policy: "PodDisruptionBudget",
  "rbac.authorization.k8s.io": "Role RoleBinding",
  "resource.k8s.io": "ResourceClaim ResourceClaimTemplate",
  "storage.k8s.io": "CSIStorageCapacity",
};

/** Irregular plurals. */
const IRREGULAR: Readonly<Record<string, string>> = { Endpoints: "endpoints" };

/** Usher's own configuration, which may be beside the policies. */
const CONFIGURATION = "UsherConfiguration";

/** Which resource an object belongs to. */
export class Resources {
  /** Kinds that are written as configuration, without metadata and spec. */
  readonly configurations: readonly Kind[];
  readonly #known = new Map<string, Resource>();
  /** Kinds of policies by their group. */
  readonly #policyKinds = new Map<string, string[]>();

  /** `workloads` may name kinds whose plural is known only from the configuration. */
  constructor(modules: readonly Module[], workloads: readonly WorkloadKind[] = []) {
    this.configurations = modules
      .flatMap(({ kinds }) => kinds)
      .filter(({ configuration }) => configuration !== undefined);
    for (const workload of workloads) {
      const name = resourceName(workload);
      this.#set(workload.group, workload.kind, { name, scope: "Namespaced", policy: undefined });
    }
    this.#table(CLUSTER, "Cluster");
    this.#table(NAMESPACED, "Namespaced");
    for (const { reads } of modules) {
      for (const read of reads) {
        this.#set(read.group, read.kind, { name: resourceName(read), scope: read.scope, policy: undefined });
      }
    }
    // Last, because a kind has the most information: a module may read what another defines.
    for (const { kinds } of modules) {
      for (const kind of kinds) {
        if (kind.group !== "") file(this.#policyKinds, kind.group, kind.kind);
        this.#set(kind.group, kind.kind, { name: kindResource(kind), scope: kind.scope, policy: kind });
      }
    }
  }

  /** The resource of a kind. An undeclared one gets the regular English plural, as Kubernetes' own tools guess it. */
  of(apiVersion: string, kind: string): Resource {
    const { group } = groupVersionOf(apiVersion);
    const key = `${group}/${kind}`;
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const guessed: Resource = {
      name: resourceName({ group, resource: pluralOf(kind) }),
      scope: undefined,
      policy: undefined,
    };
    this.#known.set(key, guessed);
    return guessed;
  }

  /** A kind that usher's policy group does not have: its objects have no effect. */
  unknownKind(apiVersion: string, kind: string): Problem | undefined {
    const { group } = groupVersionOf(apiVersion);
    const known = this.#policyKinds.get(group);
    if (known === undefined || kind === CONFIGURATION || this.of(apiVersion, kind).scope !== undefined)
      return undefined;
    const hint = didYouMean(kind, known) ?? `kinds of this group: ${known.join(", ")}`;
    return likelyMistake(["kind"], `${group} has no kind ${kind}: the object has no effect`, hint);
  }

  #table(table: Readonly<Record<string, string>>, scope: "Cluster" | "Namespaced"): void {
    for (const [group, kinds] of Object.entries(table)) {
      for (const kind of kinds.split(" ")) {
        const resource = IRREGULAR[kind] ?? pluralOf(kind);
        this.#set(group, kind, { name: resourceName({ group, resource }), scope, policy: undefined });
      }
    }
  }

  #set(group: string, kind: string, resource: Resource): void {
    this.#known.set(`${group}/${kind}`, resource);
  }
}

function file(lists: Map<string, string[]>, key: string, value: string): void {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [value]);
  else list.push(value);
}

/** kubectl's plural rule: `policy` to `policies`, `class` to `classes`, else an s. */
export function pluralOf(kind: string): string {
  const word = kind.toLowerCase();
  if (/(?:s|x|z|ch|sh)$/.test(word)) return `${word}es`;
  if (/[^aeiou]y$/.test(word)) return `${word.slice(0, -1)}ies`;
  return `${word}s`;
}

/** An object's namespace as the API server would store it: none for cluster-scoped kinds, else its own or `default`. */
export function namespaceIn(resource: Resource, object: JsonObject): string {
  const written = stringAt(object, "metadata", "namespace") ?? "";
  if (resource.scope === "Cluster") return "";
  return resource.scope === "Namespaced" && written === "" ? "default" : written;
}
