// Claims, volumes and classes as several filters read them.
import { isObject, type Json, type JsonObject, listAt, own, stringAt } from "../json.ts";
import { annotationsOf, nameOf, namespaceOf } from "../kubernetes/object.ts";
import type { PreparedWorld } from "./prepared-world.ts";

/** A volume of a pod that is a claim. */
export interface ClaimVolume {
  readonly claimName: string;
  /** The claim is created for the pod, and named after both. */
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

/** Why a claim that was created for another pod can't be used; `undefined` if it was created for this one. */
export function notForPod(pod: JsonObject, claim: JsonObject): string | undefined {
  const uid = stringAt(pod, "metadata", "uid") ?? "";
  const owner = listAt(claim, "metadata", "ownerReferences").find((one) => own(one, "controller") === true);
  if (owner !== undefined && (stringAt(owner, "uid") ?? "") === uid) return undefined;
  const names = [claim, pod].map((object) => `${namespaceOf(object)}/${nameOf(object)}`);
  return `PVC ${names[0]} was not created for pod ${names[1]} (pod is not owner)`;
}

/** The class of a claim or volume; the old annotation precedes the field. */
export function classOf(object: JsonObject): string {
  const annotation = own(annotationsOf(object), "volume.beta.kubernetes.io/storage-class");
  return typeof annotation === "string" ? annotation : (stringAt(object, "spec", "storageClassName") ?? "");
}

/** Volume sources that Kubernetes translates to those of a CSI driver, by the driver; provisioners have separate names. */
const TRANSLATED: readonly {
  readonly source: string;
  readonly provisioner: string;
  readonly driver: string;
}[] = [
  { source: "awsElasticBlockStore", provisioner: "kubernetes.io/aws-ebs", driver: "ebs.csi.aws.com" },
  { source: "gcePersistentDisk", provisioner: "kubernetes.io/gce-pd", driver: "pd.csi.storage.gke.io" },
  { source: "azureDisk", provisioner: "kubernetes.io/azure-disk", driver: "disk.csi.azure.com" },
  { source: "cinder", provisioner: "kubernetes.io/cinder", driver: "cinder.csi.openstack.org" },
  { source: "portworxVolume", provisioner: "kubernetes.io/portworx-volume", driver: "pxd.portworx.com" },
];

/** The driver to which a volume of a pod, or the spec of a PersistentVolume, is translated. */
export function translatedDriver(source: Json | undefined): string | undefined {
  return TRANSLATED.find((one) => isObject(own(source, one.source)))?.driver;
}

/** The driver to which an in-tree provisioner is translated. */
export function translatedProvisioner(provisioner: string): string | undefined {
  return TRANSLATED.find((one) => one.provisioner === provisioner)?.driver;
}

/** Whether a node declares that it translates in-tree volumes. */
export function migratesVolumes(csiNode: JsonObject | undefined): boolean {
  const plugins = csiNode === undefined ? undefined : annotationsOf(csiNode);
  return (stringAt(plugins, "storage.alpha.kubernetes.io/migrated-plugins") ?? "") !== "";
}

/** In the wording of client-go's listers. */
export function notFound(resource: string, name: string): string {
  return `${resource} "${name}" not found`;
}

export function accessModesOf(object: JsonObject): readonly Json[] {
  return listAt(object, "spec", "accessModes");
}
