import { pause } from "../cluster/patience.ts";
import { isObject, type JsonObject, listAt, stringAt } from "../core/json.ts";
import { nameOf } from "../core/kubernetes/object.ts";
import type { Module } from "../core/module.ts";
import { OWN_NAMES } from "../core/registration/names.ts";
import { describeObject, type Objects, RefusedError } from "./apply.ts";
import { isOurs, ownerOf } from "./foreign.ts";
import { FLOW_CONTROL, isWebhookConfiguration } from "./install-plan.ts";
import { resourceKinds, storedObjects } from "./stored-policies.ts";

export interface Removal {
  readonly live: JsonObject;
  readonly change: "delete" | "stays";
  readonly note?: string;
}

export interface UninstallOptions {
  /** Also the CRDs, and with them every policy. */
  readonly customResources: boolean;
}

/** How long the replicas may take to end: their grace, and something for the one who counts them. */
const END_MS = 60_000;
const LOOK_EVERY_MS = 500;

/**
 * What would go, in its order. Before all else goes usher's right to register webhooks, or it would put them back; then the webhooks,
 * so that from there on nothing in the cluster waits for usher, whatever happens next; the namespace goes last.
 */
export async function planUninstall(
  objects: Objects,
  installed: readonly JsonObject[],
  modules: readonly Module[],
  { customResources }: UninstallOptions,
): Promise<Removal[]> {
  const removals: Removal[] = [];
  const counts = await policyCounts(objects, modules);
  const namespace = installed
    .map(({ metadata }) => stringAt(metadata, "namespace"))
    .find((name) => name !== undefined);
  const queues = await objects.serves(FLOW_CONTROL);
  for (const object of [...installed].sort((a, b) => rank(a) - rank(b))) {
    if (!queues && stringAt(object, "apiVersion") === FLOW_CONTROL) continue;
    const live = await objects.read(object);
    if (live === undefined) continue;
    const kind = stringAt(object, "kind");
    if (!isOurs(live)) removals.push({ live, change: "stays", note: `belongs to ${ownerOf(live)}` });
    else if (kind === "CustomResourceDefinition") {
      const policies = counts.get(nameOf(live)) ?? 0;
      const held = policies === 1 ? "1 policy" : `${policies} policies`;
      removals.push(
        customResources
          ? { live, change: "delete", note: `with ${held}` }
          : { live, change: "stays", note: `holds ${held}; --custom-resources deletes both` },
      );
    } else if (kind === "Namespace") {
      const others = await strangersIn(objects, nameOf(live));
      removals.push(
        others.length === 0
          ? { live, change: "delete" }
          : { live, change: "stays", note: `holds what is not usher's: ${others.slice(0, 3).join(", ")}` },
      );
    } else removals.push({ live, change: "delete" });
  }
  const made = namespace === undefined ? [] : await madeWhileRunning(objects, namespace);
  const last = removals.findIndex(({ live }) => stringAt(live, "kind") === "Namespace");
  const where = last < 0 ? removals.length : last;
  removals.splice(where, 0, ...made.map((live): Removal => ({ live, change: "delete" })));
  return removals;
}

export async function carryOutRemovals(
  objects: Objects,
  removals: readonly Removal[],
  done: (one: Removal) => void,
): Promise<void> {
  for (const removal of removals) {
    if (removal.change === "delete") {
      await objects.remove(removal.live);
      // Replicas that still run would make their Secret and their tallies anew.
      if (stringAt(removal.live, "kind") === "Deployment") await podsGone(objects, removal.live);
    }
    done(removal);
  }
  // A replica may have registered itself once more, just before it lost the right to.
  for (const { live, change } of removals) {
    if (change !== "delete" || !isWebhookConfiguration(live)) continue;
    const again = await objects.read(live);
    if (again !== undefined) await objects.remove(again);
  }
}

const ORDER = ["Deployment", "PodDisruptionBudget", "Service", "ConfigMap", "Secret"];
const LATER = [
  "FlowSchema",
  "PriorityLevelConfiguration",
  "RoleBinding",
  "ClusterRoleBinding",
  "Role",
  "ClusterRole",
];
const LAST = ["ServiceAccount", "CustomResourceDefinition", "Namespace"];

function rank(object: JsonObject): number {
  const kind = stringAt(object, "kind") ?? "";
  if (kind === "ClusterRoleBinding" && nameOf(object) === OWN_NAMES.registration) return -2;
  if (isWebhookConfiguration(object)) return -1;
  return [...ORDER, ...LATER, ...LAST].indexOf(kind);
}

async function policyCounts(objects: Objects, modules: readonly Module[]): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  for (const kind of resourceKinds(modules)) {
    counts.set(`${kind.plural}.${kind.group}`, (await storedObjects(objects.client, kind)).length);
  }
  return counts;
}

/** Of what usher makes while it runs: by name, because not all of it is labelled. */
const MADE: readonly { path: string; apiVersion: string; kind: string; is: RegExp }[] = [
  { path: "/api/v1", apiVersion: "v1", kind: "Secret", is: new RegExp(`^${OWN_NAMES.certificates}$`) },
  { path: "/api/v1", apiVersion: "v1", kind: "ConfigMap", is: /^usher-tallies-/ },
  {
    path: "/apis/coordination.k8s.io/v1",
    apiVersion: "coordination.k8s.io/v1",
    kind: "Lease",
    is: /^usher(-|$)/,
  },
];

async function madeWhileRunning(objects: Objects, namespace: string): Promise<JsonObject[]> {
  const found: JsonObject[] = [];
  for (const { path, apiVersion, kind, is } of MADE) {
    for (const item of await listIn(objects, `${path}/namespaces/${namespace}/${kind.toLowerCase()}s`)) {
      if (is.test(nameOf(item))) found.push({ apiVersion, kind, ...item });
    }
  }
  return found;
}

/** What else lives in a namespace: it would go with it. Kubernetes' own are made anew with every namespace. */
async function strangersIn(objects: Objects, namespace: string): Promise<string[]> {
  const strangers: string[] = [];
  const own = /^(usher(-.*)?|kube-root-ca\.crt|openshift-service-ca\.crt|default)$/;
  const places: readonly (readonly [string, string])[] = [
    ["/apis/apps/v1", "Deployment"],
    ["/apis/apps/v1", "StatefulSet"],
    ["/apis/apps/v1", "DaemonSet"],
    ["/api/v1", "Pod"],
    ["/api/v1", "Service"],
    ["/api/v1", "ConfigMap"],
    ["/api/v1", "Secret"],
    ["/api/v1", "PersistentVolumeClaim"],
  ];
  for (const [path, kind] of places) {
    for (const item of await listIn(objects, `${path}/namespaces/${namespace}/${kind.toLowerCase()}s`)) {
      if (!own.test(nameOf(item))) strangers.push(`${kind} ${nameOf(item)}`);
    }
  }
  return strangers;
}

async function listIn(objects: Objects, path: string): Promise<JsonObject[]> {
  const answer = await objects.client.request("GET", path);
  if (answer.status !== 200) throw new RefusedError(`listing ${path}`, answer);
  return listAt(answer.body, "items").filter(isObject);
}

async function podsGone(objects: Objects, deployment: JsonObject): Promise<void> {
  const namespace = stringAt(deployment, "metadata", "namespace") ?? "";
  const path = `/api/v1/namespaces/${namespace}/pods?labelSelector=${encodeURIComponent("app.kubernetes.io/component=admission,app.kubernetes.io/name=usher")}`;
  const until = performance.now() + END_MS;
  while ((await listIn(objects, path)).length > 0) {
    if (performance.now() > until)
      throw new Error(
        `the pods of ${describeObject(deployment)} do not end; run this again when they are gone`,
      );
    await pause(LOOK_EVERY_MS);
  }
}
