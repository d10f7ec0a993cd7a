// A world prepared for many questions.
import { type JsonObject, stringAt } from "../json.ts";
import { nameOf, namespaceOf } from "../kubernetes/object.ts";
import type { Filter } from "./filter.ts";
import { NodeTable } from "./node-table.ts";
import { PlacedPods } from "./placed-pods.ts";
import { filtersOf, minorOf, NEWEST_RELEASE } from "./releases.ts";
import type { SchedulingWorld } from "./world.ts";

/** Objects by name, those of a namespace by `namespace/name`; `undefined` if the list is not in the view. */
type ByName = ReadonlyMap<string, JsonObject> | undefined;

export interface PreparedWorld {
  readonly world: SchedulingWorld;
  /** The minor version of Kubernetes 1. */
  readonly minor: number;
  readonly filters: readonly Filter[];
  readonly nodes: NodeTable;
  /** `undefined` if the pods are not in the view. */
  readonly placed: PlacedPods | undefined;
  readonly namespaces: ByName;
  readonly persistentVolumes: ByName;
  readonly persistentVolumeClaims: ByName;
  readonly storageClasses: ByName;
  readonly csiNodes: ByName;
  readonly csiDrivers: ByName;
  /** Names of extended resources that a device class provides. */
  readonly deviceResources: ReadonlySet<string> | undefined;
}

/** Prepares a world. The world and its objects must not change afterwards. */
export function prepareWorld(world: SchedulingWorld): PreparedWorld {
  const release = world.release ?? NEWEST_RELEASE;
  const minor = minorOf(release);
  const nodes = new NodeTable(world.nodes);
  return {
    world,
    minor,
    filters: filtersOf(release),
    nodes,
    placed: world.pods === undefined ? undefined : new PlacedPods(world.pods, nodes, minor),
    namespaces: byName(world.namespaces),
    persistentVolumes: byName(world.persistentVolumes),
    persistentVolumeClaims: byName(world.persistentVolumeClaims),
    storageClasses: byName(world.storageClasses),
    csiNodes: byName(world.csiNodes),
    csiDrivers: byName(world.csiDrivers),
    deviceResources: deviceResources(world.deviceClasses),
  };
}

function byName(objects: readonly JsonObject[] | undefined): ByName {
  if (objects === undefined) return undefined;
  return new Map(
    objects.map((object) => {
      const namespace = namespaceOf(object);
      return [namespace === "" ? nameOf(object) : `${namespace}/${nameOf(object)}`, object];
    }),
  );
}

/** A device class provides the extended resource that it names, and one that has its own name. */
function deviceResources(classes: readonly JsonObject[] | undefined): ReadonlySet<string> | undefined {
  if (classes === undefined) return undefined;
  const names = new Set<string>();
  for (const one of classes) {
    names.add(`deviceclass.resource.kubernetes.io/${nameOf(one)}`);
    const extended = stringAt(one, "spec", "extendedResourceName");
    if (extended !== undefined) names.add(extended);
  }
  return names;
}
