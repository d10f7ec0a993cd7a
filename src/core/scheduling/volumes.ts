// Claims, volumes and classes as several filters read them.
import { at, isObject, type Json, type JsonObject, listAt, own, stringAt } from "../json.ts";
import { annotationsOf, nameOf, namespaceOf } from "../kubernetes/object.ts";
import type { PreparedWorld } from "./prepared-world.ts";

/** A volume of a pod that is a claim. */
export interface ClaimVolume {
  readonly claimName: string;
  /** The claim is made for the pod, and named after both. */
  readonly ephemeral: boolean;
}

export function claimVolumesOf(pod: JsonObject): readonly ClaimVolume[] {
  const claims: ClaimVolume[] = [];
  for (const volume of listAt(pod, "spec", "volumes")) {
    if (isObject(own(volume, "persistentVolumeClaim"))) {
      const claimName = stringAt(volume, "persistentVolumeClaim", "claimName") ?? "";
      claims.push({ claimName, ephemeral: false });
    } else if (isObject(own(volume, "ephemeral")))
      claims.push({ claimName: `${nameOf(pod)}-${stringAt(volume, "name") ?? ""}`, ephemeral: true });
  }
  return claims;
}

/** The claim in the namespace of a pod. */
export function claimOf(pod: JsonObject, claimName: string, world: PreparedWorld): JsonObject | undefined {
  const namespace = namespaceOf(pod);
  return world.persistentVolumeClaims?.get(namespace === "" ? claimName : `${namespace}/${claimName}`);
}

/** Why a claim that was made for another pod can't be used; `undefined` where it was made for this one. */
export function notForPod(pod: JsonObject, claim: JsonObject): string | undefined {
  const uid = stringAt(pod, "metadata", "uid") ?? "";
  const owner = listAt(claim, "metadata", "ownerReferences").find((one) => own(one, "controller") === true);
  if (owner !== undefined && (stringAt(owner, "uid") ?? "") === uid) return undefined;
  const names = [claim, pod].map((object) => `${namespaceOf(object)}/${nameOf(object)}`);
  return `PVC ${names[0]} was not created for pod ${names[1]} (pod is not owner)`;
}

/** The class of a claim or volume; the annotation of old stands before the field. */
export function classOf(object: JsonObject): string {
  const annotation = own(annotationsOf(object), "volume.beta.kubernetes.io/storage-class");
  return typeof annotation === "string" ? annotation : (stringAt(object, "spec", "storageClassName") ?? "");
}

/** Sources of volumes that Kubernetes may translate to those of a CSI driver. */
const MIGRATED: readonly string[] = [
  "awsElasticBlockStore",
  "gcePersistentDisk",
  "azureDisk",
  "azureFile",
  "cinder",
  "vsphereVolume",
  "portworxVolume",
];

const MIGRATED_PROVISIONERS: ReadonlySet<string> = new Set(
  ["aws-ebs", "gce-pd", "azure-disk", "azure-file", "cinder", "vsphere-volume", "portworx-volume"].map(
    (name) => `kubernetes.io/${name}`,
  ),
);

/** A volume of a pod, or the spec of a PersistentVolume, whose source may be translated. */
export function isMigratable(source: Json | undefined): boolean {
  return MIGRATED.some((name) => isObject(own(source, name)));
}

export function isMigratableProvisioner(provisioner: string): boolean {
  return MIGRATED_PROVISIONERS.has(provisioner);
}

/** Whether a node translates any in-tree volumes. */
export function migratesVolumes(csiNode: JsonObject | undefined): boolean {
  const plugins = csiNode === undefined ? undefined : annotationsOf(csiNode);
  return (stringAt(plugins, "storage.alpha.kubernetes.io/migrated-plugins") ?? "") !== "";
}

/** As listers of client-go say it. */
export function notFound(resource: string, name: string): string {
  return `${resource} "${name}" not found`;
}

export function accessModesOf(object: JsonObject): readonly Json[] {
  return listAt(object, "spec", "accessModes");
}

export function isVolumeDeleted(object: JsonObject): boolean {
  return (at(object, "metadata", "deletionTimestamp") ?? null) !== null;
}
