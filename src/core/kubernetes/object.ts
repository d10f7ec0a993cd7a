import { at, isObject, type JsonObject, listAt, own, stringAt } from "../json.ts";

export interface ControllerReference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
}

/** The annotation by which a kubelet marks the API server's picture of a static pod. */
export const MIRROR_ANNOTATION = "kubernetes.io/config.mirror";

/** The label that the API server gives each namespace: its name. */
export const NAMESPACE_NAME = "kubernetes.io/metadata.name";

/** The object's name; empty if it has none, as before a generateName is filled in. */
export function nameOf(object: JsonObject): string {
  return stringAt(object, "metadata", "name") ?? "";
}

/** The object's namespace; empty for a cluster-scoped object, or one whose namespace is not set yet. */
export function namespaceOf(object: JsonObject): string {
  return stringAt(object, "metadata", "namespace") ?? "";
}

export function labelsOf(object: JsonObject): JsonObject | undefined {
  const labels = at(object, "metadata", "labels");
  return isObject(labels) ? labels : undefined;
}

export function annotationsOf(object: JsonObject): JsonObject | undefined {
  const annotations = at(object, "metadata", "annotations");
  return isObject(annotations) ? annotations : undefined;
}

/** Fields of metadata that the API server writes into every object. */
export const SERVER_METADATA = [
  "uid",
  "resourceVersion",
  "generation",
  "creationTimestamp",
  "managedFields",
  "selfLink",
] as const;

/** Fields of metadata that the API server changes at a write. */
export const WRITE_METADATA = ["managedFields", "resourceVersion", "generation"] as const;

/** A copy of the object without these fields of its metadata. */
export function withoutMetadata(object: JsonObject, fields: readonly string[]): JsonObject {
  const metadata = isObject(object["metadata"]) ? object["metadata"] : {};
  const kept = Object.entries(metadata).filter(([field]) => !fields.includes(field));
  return { ...object, metadata: Object.fromEntries(kept) };
}

/** `apps/v1` is version v1 of the group apps; `v1` alone belongs to the core group, whose name is empty. */
export function groupVersionOf(apiVersion: string | undefined): { group: string; version: string } {
  if (apiVersion === undefined) return { group: "", version: "" };
  const slash = apiVersion.indexOf("/");
  if (slash === -1) return { group: "", version: apiVersion };
  return { group: apiVersion.slice(0, slash), version: apiVersion.slice(slash + 1) };
}

/** The one owner that manages this object. The API server allows no more than one. */
export function controllerOf(object: JsonObject): ControllerReference | undefined {
  for (const owner of listAt(object, "metadata", "ownerReferences")) {
    if (own(owner, "controller") !== true) continue;
    return {
      apiVersion: stringAt(owner, "apiVersion") ?? "",
      kind: stringAt(owner, "kind") ?? "",
      name: stringAt(owner, "name") ?? "",
      uid: stringAt(owner, "uid") ?? "",
    };
  }
  return undefined;
}

/** Deletion was requested; only finalizers and the grace period keep the object. */
export function isBeingDeleted(object: JsonObject): boolean {
  const timestamp = at(object, "metadata", "deletionTimestamp");
  return timestamp !== undefined && timestamp !== null && timestamp !== "";
}

/** This is the object's claim: any user may write this annotation, so check the actor as well. */
export function isMirrorPod(object: JsonObject): boolean {
  const mark = own(annotationsOf(object), MIRROR_ANNOTATION);
  return mark !== undefined && mark !== null;
}

/** How an object is named by those that it owns. */
export function ownerReference({ apiVersion, kind, metadata }: JsonObject): JsonObject {
  return {
    apiVersion: apiVersion ?? "",
    kind: kind ?? "",
    name: stringAt(metadata, "name") ?? "",
    uid: stringAt(metadata, "uid") ?? "",
  };
}
