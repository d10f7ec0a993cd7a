import { isObject, type Json, type JsonObject, listAt, own } from "../../json.ts";
import { namespaceOf } from "../../kubernetes/object.ts";
import { type Filter, resolvable, SKIPS, unknown, unresolvable } from "../filter.ts";
import type { PreparedWorld } from "../prepared-world.ts";
import { accessModesOf, claimOf, claimVolumesOf, notFound } from "../volumes.ts";

const NAME = "VolumeRestrictions";
const DISK = resolvable(NAME, "node(s) had no available disk");
const IN_USE = resolvable(
  NAME,
  "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod",
);
const IN_USE_BEFORE_1_34 = resolvable(
  NAME,
  "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode",
);

/** Disks that two pods on one node can't share, and claims that one pod alone may use. */
export const VOLUME_RESTRICTIONS: Filter = {
  name: NAME,
  forPod: (pod: JsonObject, world: PreparedWorld) => {
    const { placed } = world;
    const disks = listAt(pod, "spec", "volumes").filter((volume) =>
      DISKS.some(({ source }) => isObject(own(volume, source))),
    );
    const claims = claimVolumesOf(pod).filter(({ ephemeral }) => !ephemeral);
    if (disks.length === 0 && claims.length === 0) return SKIPS;
    if (claims.length > 0 && world.persistentVolumeClaims === undefined)
      return unknown(NAME, "the claims are not in the view");
    let exclusive = false;
    for (const { claimName } of claims) {
      const claim = claimOf(pod, claimName, world);
      if (claim === undefined) return unresolvable(NAME, notFound("persistentvolumeclaim", claimName));
      if (!accessModesOf(claim).includes("ReadWriteOncePod")) continue;
      if (placed === undefined) return unknown(NAME, "the pods of the nodes are not in the view");
      exclusive ||= placed.claims.has(`${namespaceOf(pod)}/${claimName}`);
    }
    if (disks.length === 0 && !exclusive) return SKIPS;
    if (placed === undefined) return unknown(NAME, "the pods of the nodes are not in the view");
    const others = placed.withVolumes;
    const inUse = world.minor >= 34 ? IN_USE : IN_USE_BEFORE_1_34;
    const isUsed = (node: number): boolean =>
      (others.get(node) ?? []).some((other) =>
        listAt(other, "spec", "volumes").some((volume) => disks.some((disk) => conflict(disk, volume))),
      );
    return {
      kind: "filters",
      judge: (node) => (disks.length > 0 && isUsed(node) ? DISK : exclusive ? inUse : undefined),
    };
  },
};

/** When two volumes of a source are the same disk, and whether two readers may share it. */
const DISKS: readonly {
  readonly source: string;
  readonly same: (a: Json, b: Json) => boolean;
  readonly shared: boolean;
}[] = [
  { source: "gcePersistentDisk", same: (a, b) => text(a, "pdName") === text(b, "pdName"), shared: true },
  {
    source: "awsElasticBlockStore",
    same: (a, b) => text(a, "volumeID") === text(b, "volumeID"),
    shared: false,
  },
  { source: "iscsi", same: (a, b) => text(a, "iqn") === text(b, "iqn"), shared: true },
  {
    source: "rbd",
    same: (a, b) =>
      listAt(a, "monitors").some((monitor) => listAt(b, "monitors").includes(monitor)) &&
      text(a, "pool") === text(b, "pool") &&
      text(a, "image") === text(b, "image"),
    shared: true,
  },
];

function conflict(volume: Json, other: Json): boolean {
  return DISKS.some(({ source, same, shared }) => {
    const [a, b] = [own(volume, source), own(other, source)];
    if (!isObject(a) || !isObject(b) || !same(a, b)) return false;
    return !(shared && own(a, "readOnly") === true && own(b, "readOnly") === true);
  });
}

function text(value: Json, field: string): Json {
  return own(value, field) ?? "";
}
