import { at, type JsonObject, listAt, own, stringAt } from "../../json.ts";
import { namespaceOf } from "../../kubernetes/object.ts";
import { type Failure, type Filter, type Outcome, resolvable, SKIPS, unknown } from "../filter.ts";
import type { PreparedWorld } from "../prepared-world.ts";
import {
  claimOf,
  claimVolumesOf,
  classOf,
  isMigratable,
  isMigratableProvisioner,
  migratesVolumes,
  notForPod,
} from "../volumes.ts";

const NAME = "NodeVolumeLimits";
const EXCEEDED = resolvable(NAME, "node(s) exceed max volume count");
const MIGRATED = unknown(NAME, "the node translates in-tree volumes to those of a CSI driver");
const UNREADABLE = unknown(NAME, "a volume of the node's pods can't be counted");
/** Drivers may ask since that pods keep off nodes without them. */
const DRIVER_CHECK_SINCE = 37;

/** How many volumes of a CSI driver a node can attach. */
export const NODE_VOLUME_LIMITS: Filter = {
  name: NAME,
  forPod: (pod: JsonObject, world: PreparedWorld) => {
    const inline = listAt(pod, "spec", "volumes").some(isMigratable);
    if (claimVolumesOf(pod).length === 0 && !inline) return SKIPS;
    const missing = missingLists(world);
    if (missing !== undefined) return unknown(NAME, `${missing} are not in the view`);
    const wanted = new Map<string, string>();
    const open = addVolumes(wanted, pod, world) === "migratable";
    const notInstalled = new Map<string, Failure>();
    const judge = (node: number): Outcome => {
      const csiNode = world.csiNodes?.get(world.nodes.names[node] ?? "");
      if (open && migratesVolumes(csiNode)) return MIGRATED;
      if (wanted.size === 0) return undefined;
      for (const driver of new Set(wanted.values())) {
        if (!isMissing(driver, csiNode, world)) continue;
        const reason = `${driver} CSI driver is not installed on the node`;
        const failure = notInstalled.get(driver) ?? resolvable(NAME, reason);
        notInstalled.set(driver, failure);
        return failure;
      }
      return judgeLimits(node, csiNode, wanted, world);
    };
    return { kind: "filters", judge };
  },
};

function missingLists(world: PreparedWorld): string | undefined {
  if (world.persistentVolumeClaims === undefined) return "the claims";
  if (world.persistentVolumes === undefined) return "the volumes";
  if (world.storageClasses === undefined) return "the storage classes";
  if (world.csiNodes === undefined) return "the CSINodes";
  if (world.csiDrivers === undefined) return "the CSIDrivers";
  return undefined;
}

/** Adds the volumes of a pod by their unique name, each with its driver. Says where some may be translated on some nodes. */
function addVolumes(
  volumes: Map<string, string>,
  pod: JsonObject,
  world: PreparedWorld,
): "migratable" | "unreadable" | undefined {
  let migratable = listAt(pod, "spec", "volumes").some(isMigratable);
  for (const { claimName, ephemeral } of claimVolumesOf(pod)) {
    const claim = claimOf(pod, claimName, world);
    if (claim === undefined) continue;
    if (ephemeral && notForPod(pod, claim) !== undefined) return "unreadable";
    const volume = world.persistentVolumes?.get(stringAt(claim, "spec", "volumeName") ?? "");
    if (volume === undefined) {
      const storageClass = world.storageClasses?.get(classOf(claim));
      if (storageClass === undefined) continue;
      const provisioner = stringAt(storageClass, "provisioner") ?? "";
      if (isMigratableProvisioner(provisioner)) migratable = true;
      else if (provisioner !== "")
        volumes.set(`${provisioner}/unbound ${namespaceOf(claim)}/${claimName}`, provisioner);
      continue;
    }
    const driver = stringAt(volume, "spec", "csi", "driver") ?? "";
    const handle = stringAt(volume, "spec", "csi", "volumeHandle") ?? "";
    if (driver !== "" && handle !== "") volumes.set(`${driver}/${handle}`, driver);
    else if (isMigratable(own(volume, "spec"))) migratable = true;
  }
  return migratable ? "migratable" : undefined;
}

function isMissing(driver: string, csiNode: JsonObject | undefined, world: PreparedWorld): boolean {
  if (world.minor < DRIVER_CHECK_SINCE) return false;
  const object = world.csiDrivers?.get(driver);
  if (object === undefined || at(object, "spec", "preventPodSchedulingIfMissing") !== true) return false;
  return !listAt(csiNode, "spec", "drivers").some((one) => own(one, "name") === driver);
}

function judgeLimits(
  node: number,
  csiNode: JsonObject | undefined,
  wanted: ReadonlyMap<string, string>,
  world: PreparedWorld,
): Outcome {
  const limits = new Map<string, number>();
  for (const driver of listAt(csiNode, "spec", "drivers")) {
    const count = at(driver, "allocatable", "count");
    const name = stringAt(driver, "name");
    if (typeof count === "number" && name !== undefined) limits.set(name, count);
  }
  const limited = new Set([...wanted.values()].filter((driver) => limits.has(driver)));
  if (limited.size === 0) return undefined;
  if (world.placed === undefined) return unknown(NAME, "the pods of the nodes are not in the view");
  const attached = new Map<string, string>();
  for (const pod of world.placed.withVolumes.get(node) ?? []) {
    const open = addVolumes(attached, pod, world);
    if (open === "unreadable") return UNREADABLE;
    if (open === "migratable" && migratesVolumes(csiNode)) return MIGRATED;
  }
  const fresh = new Map([...wanted].filter(([name]) => !attached.has(name)));
  const isAttachmentKnown = addAttachments(attached, world.nodes.names[node] ?? "", world);
  for (const driver of limited) {
    const all = countOf(attached, driver) + countOf(fresh, driver);
    if (countOf(fresh, driver) > 0 && all > (limits.get(driver) ?? 0)) return EXCEEDED;
  }
  if (!isAttachmentKnown && fresh.size > 0)
    return unknown(NAME, "the volume attachments are not in the view");
  return undefined;
}

function countOf(volumes: ReadonlyMap<string, string>, driver: string): number {
  let count = 0;
  for (const one of volumes.values()) if (one === driver) count++;
  return count;
}

/** Adds volumes that are attached although no pod on the node uses them. False where they are not in the view. */
function addAttachments(
  attached: Map<string, string>,
  nodeName: string,
  { world, persistentVolumes }: PreparedWorld,
): boolean {
  if (world.volumeAttachments === undefined) return false;
  for (const attachment of world.volumeAttachments) {
    if (stringAt(attachment, "spec", "nodeName") !== nodeName) continue;
    const attacher = stringAt(attachment, "spec", "attacher") ?? "";
    const volume = persistentVolumes?.get(
      stringAt(attachment, "spec", "source", "persistentVolumeName") ?? "",
    );
    const handle = volume === undefined ? undefined : at(volume, "spec", "csi", "volumeHandle");
    if (attacher === "" || volume === undefined || at(volume, "spec", "csi") === undefined) continue;
    attached.set(`${attacher}/${typeof handle === "string" ? handle : ""}`, attacher);
  }
  return true;
}
