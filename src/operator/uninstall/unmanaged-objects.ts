import type { Client } from "../../cluster/client/client.ts";
import {
  discoveredGroupVersions,
  discoveredResources,
  listIfServed,
} from "../../cluster/client/list-pages.ts";
import { at, type Json, type JsonObject, listAt, stringAt } from "../../core/json.ts";
import { groupVersionOf, nameOf } from "../../core/kubernetes/object.ts";
import { OWN_NAMES } from "../../core/registration/names.ts";

/** Usher's objects in a namespace, or objects that are deleted before it. */
export interface Expected {
  /** As they were read. Objects that they own are expected too. */
  readonly objects: readonly JsonObject[];
  /** Resources that are deleted with their CRDs: `seatings.test.usher.dev`. */
  readonly resources: ReadonlySet<string>;
}

interface Listable {
  readonly group: string;
  readonly version: string;
  readonly resource: string;
  readonly kind: string;
}

interface Item {
  readonly kind: string;
  readonly live: JsonObject;
}

/**
 * The objects in a namespace that are not usher's and would be deleted with it, each as `CronJob backup`. Everything
 * that the API server can list counts, and a similar name makes nothing usher's. Rejects if something can't be listed:
 * then the namespace must stay.
 */
export async function unmanagedObjectsIn(
  client: Client,
  namespace: string,
  expected: Expected,
): Promise<string[]> {
  const resources = await listable(client);
  const lists = await Promise.all(
    resources
      .filter(({ group, resource }) => !expected.resources.has(`${resource}.${group}`))
      .map(async (one) => {
        const items = await listIfServed(client, { ...one, namespaced: true }, namespace);
        return items.map((live): Item => ({ kind: one.kind, live }));
      }),
  );
  const unmanaged = unexpected(lists.flat(), expected.objects).filter(
    ({ kind, live }) => !isAutomatic(kind, live),
  );
  // An owner is more informative than its objects.
  const owned = ({ live }: Item) => listAt(live, "metadata", "ownerReferences").length > 0;
  return [...unmanaged.filter((one) => !owned(one)), ...unmanaged.filter(owned)].map(
    ({ kind, live }) => `${kind} ${nameOf(live)}`,
  );
}

function unexpected(items: readonly Item[], objects: readonly JsonObject[]): Item[] {
  const known = new Set(objects.flatMap((object) => stringAt(object, "metadata", "uid") ?? []));
  let rest = items;
  // An owner may come after its objects, and they may own more.
  for (let before = Number.POSITIVE_INFINITY; rest.length < before; ) {
    before = rest.length;
    rest = rest.filter(({ live }) => {
      const uid = stringAt(live, "metadata", "uid") ?? "";
      const owners = listAt(live, "metadata", "ownerReferences").map((one) => stringAt(one, "uid") ?? "");
      if (!known.has(uid) && !owners.some((owner) => known.has(owner))) return true;
      known.add(uid);
      return false;
    });
  }
  return [...rest];
}

/** Objects that Kubernetes creates itself, in every namespace or for objects of usher. */
function isAutomatic(kind: string, live: JsonObject): boolean {
  const name = nameOf(live);
  switch (kind) {
    case "ConfigMap":
      return name === "kube-root-ca.crt" || name === "openshift-service-ca.crt";
    case "ServiceAccount":
      return name === "default";
    // Endpoints have no owners, unlike their successors, the slices.
    case "Endpoints":
      return name === OWN_NAMES.service || name === OWN_NAMES.metrics;
    case "Secret": {
      const account = stringAt(live, "metadata", "annotations", "kubernetes.io/service-account.name");
      const isToken = stringAt(live, "type") === "kubernetes.io/service-account-token";
      return isToken && ["default", OWN_NAMES.account, OWN_NAMES.watchdog].includes(account ?? "");
    }
    default:
      return false;
  }
}

/** In any served version: a resource may be in a version that is not its group's first. */
async function listable(client: Client): Promise<Listable[]> {
  const versions = ["v1", ...(await discoveredGroupVersions(client))];
  const resources = await Promise.all(
    versions.map(async (groupVersion) => {
      const { group, version } = groupVersionOf(groupVersion);
      const entries = (await discoveredResources(client, groupVersion)).filter(canBeLost);
      return entries.map((entry): Listable => {
        const resource = stringAt(entry, "name") ?? "";
        return { group, version, resource, kind: stringAt(entry, "kind") ?? resource };
      });
    }),
  );
  const found = new Map<string, Listable>();
  for (const one of resources.flat()) {
    const key = `${one.resource}.${one.group}`;
    if (!found.has(key)) found.set(key, one);
  }
  return [...found.values()];
}

/** Events expire by themselves; virtual resources, such as metrics, can't be deleted. */
function canBeLost(entry: Json): boolean {
  const verbs = listAt(entry, "verbs");
  const name = stringAt(entry, "name") ?? "";
  return (
    at(entry, "namespaced") === true &&
    verbs.includes("list") &&
    verbs.includes("delete") &&
    name !== "events"
  );
}
