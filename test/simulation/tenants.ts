/**
 * Tenants with pods and workloads, and administrators with the policies about them: placement, protected nodes, Pod
 * Security. Each request about a pod is recorded with the hooks that answered it, so that a check knows what usher was
 * asked.
 */
import { at, type Json, type JsonObject, listAt, stringAt } from "../../src/core/json.ts";
import { nameOf, namespaceOf } from "../../src/core/kubernetes/object.ts";
import { REAPPLY } from "../../src/core/provenance/reapply.ts";
import type { ServerRequest } from "./network.ts";
import { EPOCH } from "./runtime.ts";
import { type Call, DOMAIN } from "./scenario.ts";
import type { Pod, World } from "./world.ts";

/** Its pods are placed. */
export const SHOP = "shop";
export const LAB = "lab";
/** Its pods may run on protected nodes. */
export const INFRA = "infra";

/** The label of nodes in the protected group. */
export const PROTECTED = "node-role.kubernetes.io/core";
/** A label that the rules of node-labels set. */
export const POOL_KEY = `${DOMAIN}/pool`;
export const DEDICATED_KEY = "dedicated";
export const LEVEL_LABEL = "pod-security.kubernetes.io/enforce";

export const PLACEMENTS = "clusterpodschedulingpolicies.kupid.gardener.cloud";
export const GUARDS = "nodeschedulingpolicies.scheduling.openshift.io";
export const OVERRIDES = "nodeguardoverrides.usher.dev";
export const EXCEPTIONS = "podsecurityexceptions.usher.dev";

const PLACEMENTS_PATH = "/apis/kupid.gardener.cloud/v1alpha1/clusterpodschedulingpolicies";
const GUARDS_PATH = "/apis/scheduling.openshift.io/v1alpha1/nodeschedulingpolicies";
const OVERRIDES_PATH = "/apis/usher.dev/v1alpha1/nodeguardoverrides";
/** Its only name. */
export const OVERRIDE = "relief";
/** The user who grants overrides. */
export const SRE = { username: "sre", groups: ["system:authenticated"] };
const EXCEPTIONS_PATH = "/apis/usher.dev/v1alpha1/podsecurityexceptions";

export const ADMIN = { username: "admin", groups: ["system:masters", "system:authenticated"] };
const SCHEDULER = { username: "system:kube-scheduler", groups: ["system:authenticated"] };
const CONTROLLER = {
  username: "system:serviceaccount:kube-system:replicaset-controller",
  groups: ["system:serviceaccounts", "system:authenticated"],
};

/** One request about a pod or a workload, and the answers about it that came in time. */
export interface Review {
  readonly started: number;
  /** The object as it was sent. */
  readonly sent: JsonObject;
  readonly how: "create" | "replace" | "reapply" | "bind";
  /** By the name of a hook: the replicas that allowed. */
  readonly asked: Map<string, Set<Pod>>;
  /** Another request about the same object is under way: then no check can tell them apart. */
  overlaps: boolean;
}

/** Whether a hook was asked and allowed the request. A replica whose configuration excludes the namespace does nothing. */
export function isAsked({ asked, sent }: Review, hook: string): boolean {
  const replicas = [...(asked.get(hook) ?? [])];
  return replicas.some(
    ({ configuration: { excludedNamespaces = [] } }) => !excludedNamespaces.includes(namespaceOf(sent)),
  );
}

export function tenant(username: string) {
  return { username, groups: ["tenants", "system:authenticated"] };
}

export type PodCall = Extract<Call, { readonly call: "create pod" }>;

export function podOf({
  namespace,
  name,
  app,
  own,
  node,
  tolerant,
  host,
  os,
}: Omit<PodCall, "at" | "call" | "user">): JsonObject {
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, namespace, labels: { app } },
    spec: {
      containers: [{ name: "c", image: "example.com/c:1" }],
      ...(own === true ? { nodeSelector: { [POOL_KEY]: "own" } } : {}),
      ...(node === undefined ? {} : { nodeName: node }),
      ...(tolerant === true ? { tolerations: [{ operator: "Exists" }] } : {}),
      ...(host === true ? { hostPID: true } : {}),
      ...(os === true ? { os: { name: "linux" } } : {}),
    },
  };
}

function workloadOf({
  namespace,
  name,
  image,
  own,
  os,
}: Omit<Extract<Call, { readonly call: "apply workload" }>, "at" | "call">): JsonObject {
  const labels = { app: "web", workload: name };
  return {
    apiVersion: "apps/v1",
    kind: "ReplicaSet",
    metadata: { name, namespace, labels },
    spec: {
      replicas: 1,
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: {
          containers: [{ name: "c", image }],
          ...(own === true ? { nodeSelector: { [POOL_KEY]: "own" } } : {}),
          ...(os === true ? { os: { name: "linux" } } : {}),
        },
      },
    },
  };
}

/** Sends a request about a pod or a workload, and records which hooks are asked about it. */
export async function reviewed(
  world: World,
  user: ServerRequest["user"],
  request: {
    readonly method: string;
    readonly path: string;
    readonly body: JsonObject;
    readonly contentType?: string;
  },
  of: { readonly key: string; readonly how: Review["how"]; readonly sent: JsonObject },
) {
  const { key, how, sent } = of;
  const other = world.reviews.get(key);
  const review: Review = {
    started: world.runtime.now,
    sent,
    how,
    asked: new Map(),
    overlaps: other !== undefined,
  };
  if (other !== undefined) other.overlaps = true;
  world.reviews.set(key, review);
  const response = await world.send(user, request.method, request.path, request.body, request.contentType);
  if (world.reviews.get(key) === review) world.reviews.delete(key);
  world.answered(review, response.status, stringAt(response.body, "message") ?? "");
  return response;
}

function podsPath(namespace: string): string {
  return `/api/v1/namespaces/${namespace}/pods`;
}

function workloadsPath(namespace: string): string {
  return `/apis/apps/v1/namespaces/${namespace}/replicasets`;
}

export function createPod(world: World, user: ServerRequest["user"], pod: JsonObject) {
  const key = `pods ${namespaceOf(pod)}/${nameOf(pod)}`;
  const request = { method: "POST", path: podsPath(namespaceOf(pod)), body: pod };
  return reviewed(world, user, request, { key, how: "create", sent: pod });
}

/** Performs a call of a tenant, or of an administrator of policies about pods; false if it is of another sort. */
export async function performTenantCall(world: World, call: Call): Promise<boolean> {
  switch (call.call) {
    case "create pod":
      await createPod(world, tenant(call.user), podOf(call));
      return true;
    case "delete pod":
      await world.send(ADMIN, "DELETE", `${podsPath(call.namespace)}/${call.name}`, {
        kind: "DeleteOptions",
        apiVersion: "v1",
        gracePeriodSeconds: 0,
      });
      return true;
    case "bind pod":
      await bindPod(world, call);
      return true;
    case "apply workload":
      await applyWorkload(world, call);
      return true;
    case "reapply workload": {
      const { namespace, name } = call;
      const live = world.store.get("replicasets.apps", `${namespace}/${name}`);
      if (live === undefined) return true;
      const body = { metadata: { annotations: { [REAPPLY]: "now" } } };
      await reviewed(
        world,
        tenant("ann"),
        {
          method: "PATCH",
          path: `${workloadsPath(namespace)}/${name}`,
          body,
          contentType: "application/merge-patch+json",
        },
        { key: `replicasets.apps ${namespace}/${name}`, how: "reapply", sent: live },
      );
      return true;
    }
    case "set placement":
      await world.put(PLACEMENTS_PATH, placementOf(call));
      return true;
    case "delete placement":
      await world.send(ADMIN, "DELETE", `${PLACEMENTS_PATH}/${call.name}`);
      return true;
    case "set guard":
      await world.put(GUARDS_PATH, guardOf(call.mode, call.closed));
      return true;
    case "delete guard":
      await world.send(ADMIN, "DELETE", `${GUARDS_PATH}/cluster`);
      return true;
    case "set override":
      await grantOverride(world, call);
      return true;
    case "delete override":
      await world.send(ADMIN, "DELETE", `${OVERRIDES_PATH}/${OVERRIDE}`);
      return true;
    case "set level":
      await world.send(
        ADMIN,
        "PATCH",
        `/api/v1/namespaces/${call.namespace}`,
        { metadata: { labels: { [LEVEL_LABEL]: call.level } } },
        "application/merge-patch+json",
      );
      return true;
    case "set exception":
      await world.put(EXCEPTIONS_PATH, {
        apiVersion: "usher.dev/v1alpha1",
        kind: "PodSecurityException",
        metadata: { name: "host" },
        spec: {
          checks: ["hostNamespaces"],
          namespaces: call.namespaces,
          expires: new Date(EPOCH + 30 * 86_400_000).toISOString(),
        },
      });
      return true;
    case "delete exception":
      await world.send(ADMIN, "DELETE", `${EXCEPTIONS_PATH}/host`);
      return true;
    default:
      return false;
  }
}

/** As the scheduler does. */
export function bindPod(
  world: World,
  {
    namespace,
    name,
    node,
  }: Pick<Extract<Call, { readonly call: "bind pod" }>, "namespace" | "name" | "node">,
) {
  const binding = {
    apiVersion: "v1",
    kind: "Binding",
    metadata: { name, namespace },
    target: { apiVersion: "v1", kind: "Node", name: node },
  };
  return reviewed(
    world,
    SCHEDULER,
    { method: "POST", path: `${podsPath(namespace)}/${name}/binding`, body: binding },
    { key: `pods/binding ${namespace}/${name}`, how: "bind", sent: binding },
  );
}

async function grantOverride(
  world: World,
  { mode, from, until }: Extract<Call, { readonly call: "set override" }>,
): Promise<void> {
  const override = {
    apiVersion: "usher.dev/v1alpha1",
    kind: "NodeGuardOverride",
    metadata: { name: OVERRIDE },
    spec: {
      group: "core",
      mode,
      from: new Date(EPOCH + from).toISOString(),
      until: new Date(EPOCH + until).toISOString(),
      reason: "ticket 4711",
    },
  };
  const request = { method: "POST", path: OVERRIDES_PATH, body: override };
  const key = `${OVERRIDES} undefined/${OVERRIDE}`;
  await reviewed(world, SRE, request, { key, how: "create", sent: override });
}

/** As GitOps tools do: the manifest again, which drops all that others have added. */
export function applyWorkload(
  world: World,
  call: Omit<Extract<Call, { readonly call: "apply workload" }>, "at" | "call">,
) {
  const manifest = workloadOf(call);
  const path = workloadsPath(call.namespace);
  const key = `replicasets.apps ${call.namespace}/${call.name}`;
  const exists = world.store.get("replicasets.apps", `${call.namespace}/${call.name}`) !== undefined;
  const request = exists
    ? { method: "PUT", path: `${path}/${call.name}`, body: manifest }
    : { method: "POST", path, body: manifest };
  return reviewed(world, tenant("ann"), request, {
    key,
    how: exists ? "replace" : "create",
    sent: manifest,
  });
}

function placementOf(call: Extract<Call, { readonly call: "set placement" }>): JsonObject {
  const { name, value, onUpdate, enforcement, failurePolicy, targets } = call;
  const criteria: JsonObject =
    name === "pool"
      ? {
          namespaceSelector: { matchLabels: { env: "prod" } },
          podSelector: {},
          nodeSelector: { [POOL_KEY]: value },
        }
      : {
          namespaceSelector: {},
          podSelector: { matchLabels: { app: "web" } },
          tolerations: [{ key: DEDICATED_KEY, operator: "Equal", value, effect: "NoSchedule" }],
        };
  return {
    apiVersion: "kupid.gardener.cloud/v1alpha1",
    kind: "ClusterPodSchedulingPolicy",
    metadata: { name },
    spec: {
      ...criteria,
      ...(onUpdate === undefined ? {} : { onUpdate }),
      ...(enforcement === undefined ? {} : { enforcement }),
      ...(failurePolicy === undefined ? {} : { failurePolicy }),
      ...(targets === undefined ? {} : { targets }),
    },
  };
}

function guardOf(mode: string, closed: boolean): JsonObject {
  return {
    apiVersion: "scheduling.openshift.io/v1alpha1",
    kind: "NodeSchedulingPolicy",
    metadata: { name: "cluster" },
    spec: {
      groups: [
        {
          name: "core",
          labelSelector: { matchLabels: { [PROTECTED]: "" } },
          mode,
          assigners: ["system:kube-scheduler"],
          workloads: ["usher-system/usher", `${INFRA}/agent`],
          emergencyUsers: ["sre"],
          acknowledge: ["NoOtherNodes"],
          ...(closed ? { failurePolicy: "Fail" } : {}),
        },
      ],
    },
  };
}

/** The controller of ReplicaSets looks this often, and gives up a pod that is refused again and again. */
const CONTROL_MS = 2_000;
const MOST_ATTEMPTS = 10;

/** Creates the pod of each workload that has none. */
export function controlWorkloads(world: World): void {
  let created = 0;
  const attempts = new Map<string, number>();
  const look = async (): Promise<void> => {
    for (const { object } of world.store.list("replicasets.apps")) {
      const uid = stringAt(object, "metadata", "uid") ?? "";
      const owned = world.store
        .list("pods")
        .some(({ object: pod }) => stringAt(listAt(pod, "metadata", "ownerReferences")[0], "uid") === uid);
      const version = `${uid} ${at(object, "metadata", "generation")}`;
      const tried = attempts.get(version) ?? 0;
      if (owned || tried >= MOST_ATTEMPTS) continue;
      attempts.set(version, tried + 1);
      created += 1;
      const reference: Json = {
        apiVersion: "apps/v1",
        kind: "ReplicaSet",
        name: nameOf(object),
        uid,
        controller: true,
        blockOwnerDeletion: true,
      };
      const template = (at(object, "spec", "template") ?? {}) as JsonObject;
      await createPod(world, CONTROLLER, {
        apiVersion: "v1",
        kind: "Pod",
        metadata: {
          ...(template["metadata"] as JsonObject),
          name: `${nameOf(object)}-${created}`,
          namespace: namespaceOf(object),
          ownerReferences: [reference],
        },
        spec: template["spec"] ?? {},
      });
    }
    world.runtime.schedule(CONTROL_MS, () => void look());
  };
  world.runtime.schedule(CONTROL_MS, () => void look());
}
