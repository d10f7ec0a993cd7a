import { at, type JsonObject, listAt, own, stringAt } from "../../json.ts";
import { nameOf, namespaceOf } from "../../kubernetes/object.ts";
import { type Filter, type FilterOutcome, resolvable, SKIPS, unknown } from "../filter.ts";
import type { PreparedWorld } from "../prepared-world.ts";
import {
  claimOf,
  claimVolumesOf,
  classOf,
  notForPod,
  translatedDriver,
  translatedProvisioner,
} from "../volumes.ts";

const NAME = "NodeVolumeLimits";
const EXCEEDED = resolvable(NAME, "node(s) exceed max volume count");
const MIGRATED = unknown(
  NAME,
  "in-tree volumes are translated to those of a CSI driver, whose limit is not known",
);
const UNATTACHED = unknown(NAME, "the volume attachments are not in the view");
const UNREADABLE = unknown(NAME, "a volume of the node's pods can't be counted");
/** The version since which drivers may require that pods avoid nodes without them. */
const DRIVER_CHECK_SINCE = 37;

/** How many volumes of a CSI driver a node can attach. */
export const NODE_VOLUME_LIMITS: Filter = {
  name: NAME,
  forPod: (pod: JsonObject, world: PreparedWorld) => {
    const inline = listAt(pod, "spec", "volumes").some((volume) => translatedDriver(volume) !== undefined);
    if (claimVolumesOf(pod).length === 0 && !inline) return SKIPS;
    const missing = missingLists(world);
    if (missing !== undefined) return unknown(NAME, `${missing} are not in the view`);
    const wanted = new Volumes();
    wanted.add(pod, world);
    const drivers = [...new Set([...wanted.byName.values(), ...wanted.translated])];
    const notInstalled = new Map(
      drivers.map((driver) => [
        driver,
        resolvable(NAME, `${driver} CSI driver is not installed on the node`),
      ]),
    );
    return {
      kind: "filters",
      judge: (node): FilterOutcome => {
        const csiNode = world.csiNodes?.get(world.nodes.names[node] ?? "");
        // Without a CSINode nothing is translated.
        const counted = csiNode === undefined ? new Set(wanted.byName.values()) : drivers;
        for (const driver of counted) if (isMissing(driver, csiNode, world)) return notInstalled.get(driver);
        return judgeLimits(node, csiNode, wanted, world);
      },
    };
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

class Volumes {
  /** By their unique name, each with its driver. */
  readonly byName = new Map<string, string>();
  /** Drivers of in-tree volumes. Their names are translated, too, which is not simulated: they can't be counted. */
  readonly translated = new Set<string>();

  /** Adds the volumes of a pod. False if the scheduler would fail. */
  add(pod: JsonObject, world: PreparedWorld): boolean {
    for (const volume of listAt(pod, "spec", "volumes")) this.#translate(translatedDriver(volume));
    for (const { claimName, ephemeral } of claimVolumesOf(pod)) {
      const claim = claimOf(pod, claimName, world);
      if (claim === undefined) continue;
      if (ephemeral && notForPod(pod, claim) !== undefined) return false;
      const volume = world.persistentVolumes?.get(stringAt(claim, "spec", "volumeName") ?? "");
      if (volume === undefined) this.#addUnbound(claim, world);
      else this.#addBound(volume);
    }
    return true;
  }

  #addUnbound(claim: JsonObject, world: PreparedWorld): void {
    const provisioner = stringAt(world.storageClasses?.get(classOf(claim)), "provisioner") ?? "";
    const driver = translatedProvisioner(provisioner);
    this.#translate(driver);
    if (driver !== undefined || provisioner === "") return;
    this.byName.set(`${provisioner}/unbound ${namespaceOf(claim)}/${nameOf(claim)}`, provisioner);
  }

  #addBound(volume: JsonObject): void {
    const driver = stringAt(volume, "spec", "csi", "driver") ?? "";
    const handle = stringAt(volume, "spec", "csi", "volumeHandle") ?? "";
    if (driver !== "" && handle !== "") this.byName.set(`${driver}/${handle}`, driver);
    else this.#translate(translatedDriver(own(volume, "spec")));
  }

  #translate(driver: string | undefined): void {
    if (driver !== undefined) this.translated.add(driver);
  }
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
  wanted: Volumes,
  world: PreparedWorld,
): FilterOutcome {
  if (csiNode === undefined || (wanted.byName.size === 0 && wanted.translated.size === 0)) return undefined;
  const limits = limitsOf(csiNode);
  if (limits.size === 0) return undefined;
  if (world.placed === undefined) return unknown(NAME, "the pods of the nodes are not in the view");
  const attached = new Volumes();
  for (const pod of world.placed.withVolumes.get(node) ?? [])
    if (!attached.add(pod, world)) return UNREADABLE;
  const fresh = new Map([...wanted.byName].filter(([name]) => !attached.byName.has(name)));
  const isAttachmentKnown = addAttachments(attached.byName, world.nodes.names[node] ?? "", world);
  let open: FilterOutcome;
  for (const [driver, limit] of limits) {
    const count = countOf(fresh, driver);
    if (wanted.translated.has(driver) || (count > 0 && attached.translated.has(driver))) open = MIGRATED;
    if (count > 0 && countOf(attached.byName, driver) + count > limit) return EXCEEDED;
    if (count > 0 && !isAttachmentKnown) open ??= UNATTACHED;
  }
  return open;
}

function limitsOf(csiNode: JsonObject): ReadonlyMap<string, number> {
  const limits = new Map<string, number>();
  for (const driver of listAt(csiNode, "spec", "drivers")) {
    const count = at(driver, "allocatable", "count");
    const name = stringAt(driver, "name");
    if (typeof count === "number" && name !== undefined) limits.set(name, count);
  }
  return limits;
}

function countOf(volumes: ReadonlyMap<string, string>, driver: string): number {
  let count = 0;
  for (const one of volumes.values()) if (one === driver) count++;
  return count;
}

/** Adds attached volumes that no pod on the node uses. False if they are not in the view. */
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
