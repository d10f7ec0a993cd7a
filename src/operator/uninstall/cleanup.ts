import { StatusError } from "../../cluster/client/api-response.ts";
import { collectionPath } from "../../cluster/client/discovery.ts";
import { listAll } from "../../cluster/client/list-pages.ts";
import type { Installation } from "../../core/installation/installation.ts";
import { at, isObject, type JsonObject } from "../../core/json.ts";
import { nameOf } from "../../core/kubernetes/object.ts";
import type { Cleanup, Module } from "../../core/module/module.ts";
import { OWN_NAMES } from "../../core/registration/names.ts";
import type { Objects } from "../install/apply.ts";

/** An object with a mark of usher. */
export interface Marked {
  readonly live: JsonObject;
  readonly cleanup: Cleanup;
}

/** An object that may still have a mark, or any object of the resource if they could not be listed. */
export interface StillMarked {
  readonly live: JsonObject | undefined;
  readonly cleanup: Cleanup;
  readonly why: string;
}

interface Look {
  readonly marked: readonly Marked[];
  readonly unseen: readonly StillMarked[];
}

/** A node's heartbeat may conflict more than once. */
const TRIES = 5;

/**
 * The marks that modules put on objects of others. Uses the configuration of the replicas, because an uninstall may not
 * have it; to be called before it is deleted.
 */
export async function cleanupsOf(
  objects: Objects,
  installed: readonly JsonObject[],
  modules: readonly Module[],
  installation: Installation,
): Promise<Cleanup[]> {
  const configMap = installed.find(
    (object) => object["kind"] === "ConfigMap" && nameOf(object) === OWN_NAMES.configuration,
  );
  const live = configMap === undefined ? undefined : await readable(objects, configMap);
  const settings = settingsIn(live) ?? installation.settings;
  const running = settings === undefined ? installation : { ...installation, settings };
  return modules.flatMap(({ cleanup }) => cleanup?.(running) ?? []);
}

/** A job with few permissions may not read it, and uses the given configuration. */
async function readable(objects: Objects, object: JsonObject): Promise<JsonObject | undefined> {
  return objects.read(object).catch((error: unknown) => {
    if (error instanceof StatusError) return undefined;
    throw error;
  });
}

/** The settings of modules in an installed configuration; `undefined` if there is none, or it was edited into another form. */
function settingsIn(configMap: JsonObject | undefined): Record<string, JsonObject> | undefined {
  const data = at(configMap, "data");
  const [text] = isObject(data) ? Object.values(data) : [];
  if (typeof text !== "string") return undefined;
  try {
    const settings = at(JSON.parse(text), "spec", "modules");
    return isObject(settings)
      ? Object.fromEntries(
          Object.entries(settings).flatMap(([name, one]) => (isObject(one) ? [[name, one]] : [])),
        )
      : {};
  } catch {
    return undefined;
  }
}

/** Every object with a mark. Without permission to list them, an uninstall continues and reports it. */
export async function lookForMarked(objects: Objects, cleanups: readonly Cleanup[]): Promise<Look> {
  const marked: Marked[] = [];
  const unseen: StillMarked[] = [];
  for (const cleanup of cleanups) {
    try {
      for (const live of await listed(objects, cleanup))
        if (cleanup.patch(live).length > 0) marked.push({ live, cleanup });
    } catch (error) {
      if (!(error instanceof StatusError)) throw error;
      unseen.push({ live: undefined, cleanup, why: error.message });
    }
  }
  return { marked, unseen };
}

/** Removes the mark from all of them, in sequence. A failure of one does not block others. */
export async function cleanUp(
  objects: Objects,
  cleanups: readonly Cleanup[],
): Promise<readonly StillMarked[]> {
  const { marked, unseen } = await lookForMarked(objects, cleanups);
  const still = [...unseen];
  for (const one of marked) {
    const why = await freed(objects, one).catch((error: unknown) =>
      error instanceof Error ? error.message : String(error),
    );
    if (why !== undefined) still.push({ ...one, why });
  }
  return still;
}

async function freed(objects: Objects, { live, cleanup }: Marked): Promise<string | undefined> {
  let seen: JsonObject | undefined = live;
  for (let tries = 0; tries < TRIES; tries++) {
    const patch: ReturnType<Cleanup["patch"]> = seen === undefined ? [] : cleanup.patch(seen);
    if (seen === undefined || patch.length === 0 || (await objects.patch(seen, patch))) return undefined;
    seen = await objects.read(live);
  }
  return "too many concurrent writes";
}

async function listed(objects: Objects, cleanup: Cleanup): Promise<JsonObject[]> {
  const { group, version, resource, kind } = cleanup;
  const items = await listAll(
    objects.client,
    collectionPath({ group, version, resource, namespaced: false }),
  );
  const apiVersion = group === "" ? version : `${group}/${version}`;
  return items.map((item) => ({ ...item, apiVersion, kind }));
}
