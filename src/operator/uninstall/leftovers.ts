import { configuredValues, holds } from "../../core/installation/setting-condition.ts";
import type { JsonObject } from "../../core/json.ts";
import type { Cleanup, Declarations, ManagedResource, Module } from "../../core/module/module.ts";
import { storedObjects } from "../controller/managed-objects-controller.ts";
import { describeObject, type Objects } from "../install/apply.ts";
import { isCrd } from "../install/crds.ts";
import { isWebhookConfiguration } from "../install/install-plan.ts";
import { managerOf } from "../install/manager.ts";
import { isOurs } from "../install/ownership-conflict.ts";
import { cleanUp, cleanupsOf, lookForMarked, type Marked, type StillMarked } from "./cleanup.ts";

/** Marks and objects that disabled modules may have left in a cluster. Replicas no longer have permission to remove them. */
interface Leftovers {
  /** Marks on objects of others. */
  readonly cleanups: readonly Cleanup[];
  /** Objects that usher managed. */
  readonly managed: readonly { readonly module: string; readonly resources: readonly ManagedResource[] }[];
  /** Stored objects of an installation with more settings on. @default none are read */
  readonly unwanted?: readonly JsonObject[];
}

export interface FoundLeftovers {
  readonly marked: readonly Marked[];
  readonly objects: readonly JsonObject[];
  readonly unseen: readonly StillMarked[];
}

/**
 * Marks are searched by the configuration of the running replicas and by the new one. To be called before the first is
 * replaced.
 * @param modules All, on or off. @param declarations Those that are on. @param installed The objects of the
 * installation.
 */
export async function leftoversOf(
  objects: Objects,
  modules: readonly Module[],
  declarations: Declarations,
  installed: readonly JsonObject[],
): Promise<Leftovers> {
  const { installation, gates } = declarations;
  const off = modules.filter(({ name }) => !declarations.modules.some((one) => one.name === name));
  const values = configuredValues(installation, gates);
  const managed = modules.flatMap((module) => {
    const { name, managed: declared } = module;
    const unwanted = off.includes(module) || !holds(declared?.when, values);
    return declared === undefined || !unwanted ? [] : [{ module: name, resources: declared.resources }];
  });
  const cleanups = [
    ...(await cleanupsOf(objects, installed, off, installation)),
    ...off.flatMap(({ cleanup }) => cleanup?.(installation) ?? []),
  ];
  const distinct = new Map(cleanups.map((one) => [`${one.resource}.${one.group} ${one.what}`, one]));
  return { cleanups: [...distinct.values()], managed };
}

/**
 * Stored objects that an installation with everything on has and this one does not. By name, because labels are copied
 * with objects: a role that an administrator derived from one of usher's stays. CRDs stay, because policies would be
 * deleted with them.
 */
export async function unwantedObjects(
  objects: Objects,
  possible: readonly JsonObject[],
  wanted: readonly JsonObject[],
): Promise<JsonObject[]> {
  const has = new Set(wanted.map(describeObject));
  const found: JsonObject[] = [];
  for (const object of possible) {
    if (has.has(describeObject(object)) || isCrd(object) || isWebhookConfiguration(object)) continue;
    const live = await objects.read(object);
    if (live !== undefined && isOurs(live) && managerOf(live) === undefined)
      found.push({ ...live, apiVersion: object["apiVersion"] ?? "", kind: object["kind"] ?? "" });
  }
  return found;
}

export async function findLeftovers(objects: Objects, leftovers: Leftovers): Promise<FoundLeftovers> {
  const found: JsonObject[] = [...(leftovers.unwanted ?? [])];
  for (const set of leftovers.managed)
    found.push(...[...(await storedObjects(objects, set)).values()].filter(isOurs));
  return { ...(await lookForMarked(objects, leftovers.cleanups)), objects: found };
}

/** Removes all of it; returns objects that may still be marked. */
export async function removeLeftovers(
  objects: Objects,
  leftovers: Leftovers,
): Promise<readonly StillMarked[]> {
  for (const object of (await findLeftovers(objects, { ...leftovers, cleanups: [] })).objects)
    await objects.remove(object);
  return cleanUp(objects, leftovers.cleanups);
}
