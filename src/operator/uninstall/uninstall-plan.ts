import { StatusError } from "../../cluster/client/api-response.ts";
import { type JsonObject, stringAt } from "../../core/json.ts";
import { nameOf } from "../../core/kubernetes/object.ts";
import type { Module } from "../../core/module/module.ts";
import { OWN_NAMES } from "../../core/registration/names.ts";
import type { Objects } from "../install/apply.ts";
import { FLOW_CONTROL, isWebhookConfiguration } from "../install/install-plan.ts";
import { type InstalledNamespace, namespacesNamed } from "../install/installed-namespaces.ts";
import { isOurs, ownerOf } from "../install/ownership-conflict.ts";
import { resourceKinds, storedObjects } from "../install/stored-policies.ts";
import { runtimeObjects } from "./runtime-objects.ts";
import { unmanagedObjectsIn } from "./unmanaged-objects.ts";

export interface Removal {
  readonly live: JsonObject;
  readonly change: "delete" | "stays";
  readonly note?: string;
}

export interface UninstallOptions {
  /** Also the CRDs, and with them every policy. */
  readonly customResources: boolean;
  /** Other namespaces in which usher is: what they need stays. @default none */
  readonly elsewhere?: readonly InstalledNamespace[];
}

/**
 * What would go, in its order. Before all else goes usher's right to register webhooks, or it would put them back; then the webhooks,
 * so that from there on nothing in the cluster waits for usher, whatever happens next; the namespace goes last. What only informs, and
 * can't be had, is told as unknown and holds nothing up.
 */
export async function planUninstall(
  objects: Objects,
  installed: readonly JsonObject[],
  modules: readonly Module[],
  { customResources, elsewhere = [] }: UninstallOptions,
): Promise<Removal[]> {
  const namespace = installed
    .map(({ metadata }) => stringAt(metadata, "namespace"))
    .find((name) => name !== undefined);
  const unserved = await flowControlTrouble(objects);
  const ordered = [...installed].sort((a, b) => rank(a) - rank(b));
  const removals: Removal[] = [];
  let home: JsonObject | undefined;
  for (const object of ordered) {
    if (unserved !== undefined && stringAt(object, "apiVersion") === FLOW_CONTROL) {
      if (unserved !== NOT_SERVED) removals.push(unseen(object, unserved));
      continue;
    }
    const live = await objects.read(object);
    if (live === undefined) continue;
    if (!isOurs(live)) removals.push({ live, change: "stays", note: `belongs to ${ownerOf(live)}` });
    else if (stringAt(object, "kind") === "Namespace") home = live;
    else if (neededElsewhere(live, namespace, elsewhere)) {
      const where = elsewhere.map((one) => one.namespace).join(", ");
      removals.push({ live, change: "stays", note: `usher in namespace ${where} needs it` });
    } else if (stringAt(object, "kind") === "CustomResourceDefinition") {
      const held = await policiesOf(objects, modules, nameOf(live));
      removals.push(
        customResources
          ? { live, change: "delete", note: `with ${held}` }
          : { live, change: "stays", note: `holds ${held}; --custom-resources deletes both` },
      );
    } else removals.push({ live, change: "delete" });
  }
  if (namespace !== undefined) {
    const made = await runtimeObjects(objects, namespace);
    removals.push(...made.found.map((live): Removal => ({ live, change: "delete" })));
    removals.push(...made.unseen.map(({ object, why }) => unseen(object, why)));
  }
  if (home !== undefined) removals.push(await planNamespace(objects, home, removals));
  return removals;
}

/** What may be there, and nobody could look: it can't be deleted, and must not be forgotten. */
function unseen(object: JsonObject, why: string): Removal {
  return { live: object, change: "stays", note: `may be there: ${why}` };
}

const NOT_SERVED = "not served";

/** Nothing where it is served; else that it is not, or why nobody knows. */
async function flowControlTrouble(objects: Objects): Promise<string | undefined> {
  return refusedOr(async () => ((await objects.serves(FLOW_CONTROL)) ? undefined : NOT_SERVED));
}

async function refusedOr<T>(work: () => Promise<T>): Promise<T | string> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof StatusError) return error.message;
    throw error;
  }
}

/** What is the whole cluster's and does not speak of this namespace alone is used by the other one too. */
function neededElsewhere(
  live: JsonObject,
  namespace: string | undefined,
  elsewhere: readonly InstalledNamespace[],
): boolean {
  if (elsewhere.length === 0 || stringAt(live, "metadata", "namespace") !== undefined) return false;
  const named = namespacesNamed(live);
  return named.length !== 1 || named[0] !== namespace;
}

const NAMED = 3;

async function planNamespace(
  objects: Objects,
  live: JsonObject,
  removals: readonly Removal[],
): Promise<Removal> {
  const going = removals.filter(({ change }) => change === "delete").map((one) => one.live);
  const crds = going.filter((one) => stringAt(one, "kind") === "CustomResourceDefinition").map(nameOf);
  const strangers = await refusedOr(() =>
    unmanagedObjectsIn(objects.client, nameOf(live), { objects: going, resources: new Set(crds) }),
  );
  if (typeof strangers === "string")
    return { live, change: "stays", note: `what is in it could not be looked at: ${strangers}` };
  if (strangers.length === 0) return { live, change: "delete" };
  const more = strangers.length > NAMED ? ` and ${strangers.length - NAMED} more` : "";
  const named = strangers.slice(0, NAMED).join(", ");
  return { live, change: "stays", note: `holds what is not usher's: ${named}${more}` };
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

/** How many policies a CRD holds, in words. */
async function policiesOf(objects: Objects, modules: readonly Module[], crd: string): Promise<string> {
  const kind = resourceKinds(modules).find(({ plural, group }) => `${plural}.${group}` === crd);
  const count = await refusedOr(async () =>
    kind === undefined ? 0 : (await storedObjects(objects.client, kind)).length,
  );
  if (typeof count === "string") return "an unknown number of policies";
  return count === 1 ? "1 policy" : `${count} policies`;
}
