import { StatusError } from "../../cluster/client/api-response.ts";
import { collectionPath } from "../../cluster/client/discovery.ts";
import { listAll } from "../../cluster/client/list-pages.ts";
import { collectionOf, LABEL, tallyName } from "../../cluster/policy-statistics/tally-objects.ts";
import { OBSERVATIONS } from "../../core/evaluate/observations.ts";
import { type JsonObject, stringAt } from "../../core/json.ts";
import { nameOf } from "../../core/kubernetes/object.ts";
import type { Module } from "../../core/module/module.ts";
import { CERT_MANAGER } from "../../core/registration/certificates.ts";
import { customResourceDefinition, customResources } from "../../core/registration/crd.ts";
import { anchor } from "../../core/registration/managed-objects.ts";
import { OWN_NAMES } from "../../core/registration/names.ts";
import { storedObjects as managedObjects } from "../controller/managed-objects-controller.ts";
import type { Objects } from "../install/apply.ts";
import { FLOW_CONTROL, isWebhookConfiguration } from "../install/install-plan.ts";
import { type InstalledNamespace, namespacesNamed } from "../install/installed-namespaces.ts";
import { describeManaged, type Manager, managerOf } from "../install/manager.ts";
import { isOurs, isWrittenByUsher, ownerOf } from "../install/ownership-conflict.ts";
import { storedObjects } from "../install/stored-policies.ts";
import { announcementName, HOOKS_LABEL } from "../webhooks/hook-announcement.ts";
import { unmanagedObjectsIn } from "./unmanaged-objects.ts";

export interface Removal {
  readonly live: JsonObject;
  readonly change: "delete" | "stays";
  readonly note?: string;
}

interface UninstallOptions {
  /** Also the CRDs, and with them every custom resource. */
  readonly customResources: boolean;
  /** Other namespaces with an usher: objects that they need stay. @default none */
  readonly elsewhere?: readonly InstalledNamespace[];
}

/**
 * The objects that an uninstall would delete, in order: usher's permission to register webhooks, otherwise it would
 * create them again; the anchor that owns them; objects that modules manage; the webhooks, so that from there on no
 * request waits for usher, whatever happens next; the namespace last. An unreadable object is reported as unknown and
 * does not block.
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
  const unserved = new Map(
    await Promise.all(
      [FLOW_CONTROL, CERT_MANAGER].map(
        async (group) => [group, await servingProblem(objects, group)] as const,
      ),
    ),
  );
  const ordered = [...installed, ...unlisted(installed, modules)].sort((a, b) => rank(a) - rank(b));
  const removals: Removal[] = [];
  const managed = elsewhere.length > 0 ? [] : await planManaged(objects, modules);
  let home: JsonObject | undefined;
  for (const object of ordered) {
    if (rank(object) > MANAGED_RANK) removals.push(...managed.splice(0));
    const problem = unserved.get(stringAt(object, "apiVersion") ?? "");
    if (problem !== undefined) {
      if (problem !== NOT_SERVED) removals.push(unseen(object, problem));
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
      const held = await countOf(objects, modules, nameOf(live));
      removals.push(
        customResources
          ? { live, change: "delete", note: `with ${held}` }
          : { live, change: "stays", note: `holds ${held}; --custom-resources deletes both` },
      );
    } else removals.push({ live, change: "delete" });
  }
  removals.push(...managed);
  if (namespace !== undefined) {
    const made = await runtimeObjects(objects, namespace);
    removals.push(...made.found.map((live): Removal => ({ live, change: "delete" })));
    removals.push(...made.unseen.map(({ object, why }) => unseen(object, why)));
  }
  if (home !== undefined) removals.push(await planNamespace(objects, home, removals));
  return removals;
}

/** Why an uninstall may not be executed: another tool manages the objects, and would create them again or miss them. */
export function uninstallRefusals(removals: readonly Removal[]): string[] {
  const going = removals.filter(({ change }) => change === "delete").map(({ live }) => live);
  return describeManaged(going, ({ remove, what }) => [
    `to remove this installation: ${remove}`,
    `if ${what} is gone: usher uninstall --force`,
  ]);
}

/**
 * The same with `--force`, for leftovers of a vanished manager: only a Helm release that is still recorded counts,
 * because Helm can remove it. The caller decides whether another manager is gone.
 */
export async function forcedRefusals(objects: Objects, removals: readonly Removal[]): Promise<string[]> {
  const going = removals.filter(({ change }) => change === "delete");
  const recorded: Removal[] = [];
  const known = new Map<string, boolean>();
  for (const removal of going) {
    const manager = managerOf(removal.live);
    if (manager?.record === undefined) continue;
    if (!known.has(manager.what)) known.set(manager.what, await isRecorded(objects, manager.record));
    if (known.get(manager.what) === true) recorded.push(removal);
  }
  return describeManaged(
    recorded.map(({ live }) => live),
    ({ remove }) => [`it is still there; to remove this installation: ${remove}`],
  );
}

async function isRecorded(objects: Objects, record: NonNullable<Manager["record"]>): Promise<boolean> {
  const { namespace, labelSelector } = record;
  const path = collectionPath({ group: "", version: "v1", resource: "secrets", namespaced: true }, namespace);
  const found = await refusedOr(() => listAll(objects.client, path, { labelSelector }));
  return typeof found !== "string" && found.length > 0;
}

/** An object that may exist and could not be read. */
function unseen(object: JsonObject, why: string): Removal {
  return { live: object, change: "stays", note: `may exist: ${why}` };
}

const NOT_SERVED = "not served";

/** `undefined` if it is served; else that it is not, or why that is unknown. */
async function servingProblem(objects: Objects, groupVersion: string): Promise<string | undefined> {
  return refusedOr(async () => ((await objects.serves(groupVersion)) ? undefined : NOT_SERVED));
}

async function refusedOr<T>(work: () => Promise<T>): Promise<T | string> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof StatusError) return error.message;
    throw error;
  }
}

/** A cluster-scoped object that does not refer only to this namespace is used by the other installation too. */
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
  const unmanaged = await refusedOr(() =>
    unmanagedObjectsIn(objects.client, nameOf(live), { objects: going, resources: new Set(crds) }),
  );
  if (typeof unmanaged === "string")
    return { live, change: "stays", note: `its contents could not be listed: ${unmanaged}` };
  const manager = managerOf(live);
  if (manager !== undefined) return { live, change: "stays", note: `managed by ${manager.what}` };
  if (unmanaged.length === 0) return { live, change: "delete" };
  const more = unmanaged.length > NAMED ? ` and ${unmanaged.length - NAMED} more` : "";
  const named = unmanaged.slice(0, NAMED).join(", ");
  return { live, change: "stays", note: `contains unmanaged objects: ${named}${more}` };
}

const ORDER = ["Deployment", "PodDisruptionBudget", "ResourceQuota", "Service", "ConfigMap", "Secret"];
const LATER = [
  "FlowSchema",
  "PriorityLevelConfiguration",
  "RoleBinding",
  "ClusterRoleBinding",
  "Role",
  "ClusterRole",
];
const LAST = ["ServiceAccount", "CustomResourceDefinition", "Namespace"];

/** Between usher's permission to register and its webhooks. */
const MANAGED_RANK = -2;

function rank(object: JsonObject): number {
  const kind = stringAt(object, "kind") ?? "";
  if (kind === "ClusterRoleBinding" && nameOf(object) === OWN_NAMES.registration) return MANAGED_RANK - 2;
  // From then on the garbage collector removes the webhooks, if the uninstall does not get that far.
  if (kind === "ClusterRole" && nameOf(object) === OWN_NAMES.anchor) return MANAGED_RANK - 1;
  if (isWebhookConfiguration(object)) return MANAGED_RANK + 1;
  return [...ORDER, ...LATER, ...LAST].indexOf(kind);
}

/** CRDs that the given configuration does not register: that of the replicas may. */
function unlisted(installed: readonly JsonObject[], modules: readonly Module[]): JsonObject[] {
  const names = new Set(installed.map(nameOf));
  return customResources(modules)
    .map(customResourceDefinition)
    .filter((crd) => !names.has(nameOf(crd)));
}

/** The objects that modules manage. A resource that can't be listed is reported, and does not block. */
async function planManaged(objects: Objects, modules: readonly Module[]): Promise<Removal[]> {
  const removals: Removal[] = [];
  for (const { name, managed } of modules) {
    for (const resource of managed?.resources ?? []) {
      const found = await refusedOr(() => managedObjects(objects, { module: name, resources: [resource] }));
      if (typeof found === "string") {
        const { group, version, kind } = resource;
        const apiVersion = group === "" ? version : `${group}/${version}`;
        removals.push(unseen({ apiVersion, kind, metadata: { name: `of module ${name}` } }, found));
      } else
        for (const live of found.values())
          if (isWrittenByUsher(live)) removals.push({ live, change: "delete" });
    }
  }
  return removals;
}

/** The number of objects of a CRD, in words. */
async function countOf(objects: Objects, modules: readonly Module[], crd: string): Promise<string> {
  const kind = customResources(modules).find(({ plural, group }) => `${plural}.${group}` === crd);
  const isState = modules.some(({ stateKinds = [] }) => stateKinds.some((one) => one === kind));
  const [one, many] = isState ? ["object", "objects"] : ["policy", "policies"];
  const count = await refusedOr(async () =>
    kind === undefined ? 0 : (await storedObjects(objects.client, kind)).length,
  );
  if (typeof count === "string") return `an unknown number of ${many}`;
  return count === 1 ? `1 ${one}` : `${count} ${many}`;
}

const WEBHOOKS: readonly JsonObject[] = ["Mutating", "Validating"].map((phase) => ({
  apiVersion: "admissionregistration.k8s.io/v1",
  kind: `${phase}WebhookConfiguration`,
  metadata: { name: OWN_NAMES.webhooks },
}));

/**
 * Only the objects to delete so that no request waits for usher, in order: the anchor, without which running replicas
 * register nothing; objects that modules manage; the webhooks. The rest is left to the tool that manages the
 * installation.
 */
export async function planWebhookRemoval(objects: Objects, modules: readonly Module[]): Promise<Removal[]> {
  const removals: Removal[] = [];
  const own = await objects.read(anchor());
  if (own !== undefined) removals.push(removal(own, isOurs(own)));
  removals.push(...(await planManaged(objects, modules)));
  for (const webhook of WEBHOOKS) {
    const live = await objects.read(webhook);
    if (live !== undefined) removals.push(removal(live, isWrittenByUsher(live)));
  }
  return removals;
}

function removal(live: JsonObject, ours: boolean): Removal {
  return ours ? { live, change: "delete" } : { live, change: "stays", note: `belongs to ${ownerOf(live)}` };
}

/** Objects that usher created at run time, and those that could not be read. */
interface RuntimeObjects {
  readonly found: readonly JsonObject[];
  readonly unseen: readonly { readonly object: JsonObject; readonly why: string }[];
}

/** By exact names, and tallies and observations by their labels: a similar name is another owner's. */
async function runtimeObjects(objects: Objects, namespace: string): Promise<RuntimeObjects> {
  const named = (apiVersion: string, kind: string, name: string): JsonObject => ({
    apiVersion,
    kind,
    metadata: { name, namespace },
  });
  const reads: readonly (readonly [JsonObject, () => Promise<readonly (JsonObject | undefined)[]>])[] = [
    ...[
      named("v1", "Secret", OWN_NAMES.certificates),
      named("coordination.k8s.io/v1", "Lease", OWN_NAMES.lease),
    ].map((object) => [object, async () => [await objects.read(object)]] as const),
    ...(
      [
        [tallyName("*"), LABEL],
        [announcementName("*"), HOOKS_LABEL],
        [OBSERVATIONS.name("*"), OBSERVATIONS.label],
      ] as const
    ).map(
      ([name, labelSelector]) =>
        [
          named("v1", "ConfigMap", name),
          async () => {
            const items = await listAll(objects.client, collectionOf(namespace), { labelSelector });
            return items.map((item) => ({ apiVersion: "v1", kind: "ConfigMap", ...item }));
          },
        ] as const,
    ),
  ];
  const found: JsonObject[] = [];
  const unseen: { object: JsonObject; why: string }[] = [];
  for (const [object, read] of reads) {
    try {
      found.push(...(await read()).filter((one) => one !== undefined));
    } catch (error) {
      if (!(error instanceof StatusError)) throw error;
      unseen.push({ object, why: error.message });
    }
  }
  return { found, unseen };
}
