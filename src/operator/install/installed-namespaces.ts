import { StatusError } from "../../cluster/client/api-response.ts";
import { listAll } from "../../cluster/client/list-pages.ts";
import { at, equal, type JsonObject, listAt, stringAt } from "../../core/json.ts";
import { nameOf, namespaceOf } from "../../core/kubernetes/object.ts";
import { OWN_LABELS, OWN_NAMES } from "../../core/registration/names.ts";
import { WATCHDOG_LABELS } from "../../core/registration/pods/watchdog.ts";
import { POD_LABELS } from "../../core/registration/workload.ts";
import { describeObject, type Objects, selectorText } from "./apply.ts";
import { isOurs } from "./ownership-conflict.ts";

/** A namespace in which usher is installed, and the object that shows it. */
export interface InstalledNamespace {
  readonly namespace: string;
  readonly by: string;
}

const INDICATIONS: readonly JsonObject[] = [
  ["rbac.authorization.k8s.io/v1", "ClusterRoleBinding", OWN_NAMES.account],
  ["rbac.authorization.k8s.io/v1", "ClusterRoleBinding", OWN_NAMES.registration],
  ["rbac.authorization.k8s.io/v1", "ClusterRoleBinding", OWN_NAMES.watchdog],
  ["admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", OWN_NAMES.webhooks],
  ["admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", OWN_NAMES.webhooks],
].map(([apiVersion, kind, name]) => ({ apiVersion, kind, metadata: { name } }));

/**
 * Where usher is installed, by its cluster-scoped objects: its roles and webhooks have fixed names, so only one
 * installation works. More than one namespace means that a second installation took objects of the first.
 */
export async function installedNamespaces(objects: Objects): Promise<InstalledNamespace[]> {
  const found = new Map<string, string>();
  const add = (namespace: string, object: JsonObject) => {
    if (!found.has(namespace)) found.set(namespace, describeObject(object));
  };
  for (const indication of INDICATIONS) {
    const live = await objects.read(indication);
    if (live === undefined || !isOurs(live)) continue;
    for (const namespace of namespacesNamed(live)) add(namespace, indication);
  }
  for (const deployment of await deployments(objects)) add(namespaceOf(deployment), deployment);
  return [...found].map(([namespace, by]) => ({ namespace, by }));
}

const ACCOUNTS: readonly string[] = [OWN_NAMES.account, OWN_NAMES.watchdog];
/** With the labels that each selects. */
const DEPLOYMENTS: Readonly<Record<string, JsonObject>> = {
  [OWN_NAMES.deployment]: POD_LABELS,
  [OWN_NAMES.watchdog]: WATCHDOG_LABELS,
};

/** The namespaces that a cluster-scoped object refers to, by usher's account or Service. Entries of others do not count. */
export function namespacesNamed(live: JsonObject): string[] {
  const accounts = listAt(live, "subjects").filter((one) => ACCOUNTS.includes(stringAt(one, "name") ?? ""));
  const services = listAt(live, "webhooks")
    .map((one) => at(one, "clientConfig", "service"))
    .filter((one) => stringAt(one, "name") === OWN_NAMES.service);
  return [...new Set([...accounts, ...services].flatMap((one) => stringAt(one, "namespace") ?? []))];
}

const NAME_LABEL = "app.kubernetes.io/name";

/** By their labels, in all namespaces. An additional indication: without permission to list them, the others decide. */
async function deployments(objects: Objects): Promise<JsonObject[]> {
  try {
    const items = await listAll(objects.client, "/apis/apps/v1/deployments", {
      labelSelector: selectorText({ [NAME_LABEL]: OWN_LABELS[NAME_LABEL] }),
    });
    // Another product may have this name too.
    return items
      .filter((item) =>
        equal(at(item, "spec", "selector", "matchLabels") ?? null, DEPLOYMENTS[nameOf(item)] ?? false),
      )
      .map((item) => ({ apiVersion: "apps/v1", kind: "Deployment", ...item }));
  } catch (error) {
    if (error instanceof StatusError) return [];
    throw error;
  }
}
