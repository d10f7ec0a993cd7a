import { FIELD_MANAGER } from "../../cluster/client/client.ts";
import { at, isObject, type Json, type JsonObject, listAt, stringAt } from "../../core/json.ts";
import { nameOf } from "../../core/kubernetes/object.ts";
import { compareVersions, parseVersion } from "../../core/kubernetes/versions.ts";
import { OWN_LABELS, VERSION_LABEL } from "../../core/registration/names.ts";
import { OPERATOR_LABEL } from "../../core/registration/operator.ts";
import { managerOf } from "./manager.ts";

/** Whether a stored object is usher's, whatever manages it: by its name label, or because usher has applied it. */
export function isOurs(live: JsonObject): boolean {
  if (keeperOf(live) !== undefined) return false;
  return isLabelled(live, "app.kubernetes.io/name") || isApplied(live);
}

/** OLM, or the manifests of an operator: they upgrade and remove their objects, and usher uses these unchanged. */
export function keeperOf(live: JsonObject): string | undefined {
  const labels = at(live, "metadata", "labels");
  const isOfOlm =
    isObject(labels) && Object.keys(labels).some((key) => key.startsWith("operators.coreos.com/"));
  if (isOfOlm || stringAt(labels, "olm.managed") === "true") return "OLM";
  return stringAt(labels, OPERATOR_LABEL);
}

/**
 * Whether usher itself wrote an object at run time, which no manager does: by both of its labels, or because usher has
 * applied it, regardless of its labels.
 */
export function isWrittenByUsher(live: JsonObject): boolean {
  const both = isLabelled(live, "app.kubernetes.io/name") && isLabelled(live, "app.kubernetes.io/managed-by");
  return both || isApplied(live);
}

function isLabelled(live: JsonObject, key: keyof typeof OWN_LABELS): boolean {
  return stringAt(live, "metadata", "labels", key) === OWN_LABELS[key];
}

function isApplied(live: JsonObject): boolean {
  return listAt(live, "metadata", "managedFields").some(
    (entry) => stringAt(entry, "manager") === FIELD_MANAGER && stringAt(entry, "operation") === "Apply",
  );
}

/** The probable owner of an object, for users. */
export function ownerOf(live: JsonObject): string {
  const labels = at(live, "metadata", "labels");
  const by = stringAt(labels, "app.kubernetes.io/managed-by");
  const part = stringAt(labels, "app.kubernetes.io/name") ?? stringAt(labels, "app");
  const managers = listAt(live, "metadata", "managedFields").flatMap(
    (entry) => stringAt(entry, "manager") ?? [],
  );
  const [first] = managers.filter((manager) => manager !== "kube-apiserver");
  const manager = managerOf(live);
  if (manager !== undefined) return manager.what;
  const keeper = keeperOf(live);
  if (keeper !== undefined) return keeper;
  const parts = [part, by === undefined ? undefined : `managed by ${by}`].filter((one) => one !== undefined);
  if (parts.length > 0) return parts.join(", ");
  return first === undefined ? "an unknown owner" : `field manager ${first}`;
}

/** The parts that usher needs and that a CRD of another owner does not have. */
interface ConflictingCrd {
  readonly name: string;
  readonly owner: string;
  /** `spec.priority`: the API server prunes it from every object. */
  readonly pruned: readonly string[];
  /** Versions that it does not serve. */
  readonly versions: readonly string[];
  readonly noStatus: boolean;
  readonly otherScope: boolean;
}

export function conflictingCrd(wanted: JsonObject, live: JsonObject): ConflictingCrd {
  const served = listAt(live, "spec", "versions").filter((version) => at(version, "served") === true);
  const found = new Map(served.map((version) => [stringAt(version, "name"), version]));
  const pruned = new Set<string>();
  const versions: string[] = [];
  let noStatus = false;
  for (const version of listAt(wanted, "spec", "versions")) {
    const name = stringAt(version, "name") ?? "";
    const other = found.get(name);
    if (other === undefined) {
      versions.push(name);
      continue;
    }
    for (const field of prunedFields(schemaOf(version), schemaOf(other), "")) pruned.add(field);
    noStatus ||=
      at(version, "subresources", "status") !== undefined &&
      at(other, "subresources", "status") === undefined;
  }
  return {
    name: nameOf(live),
    owner: ownerOf(live),
    pruned: [...pruned],
    versions,
    noStatus,
    otherScope: stringAt(live, "spec", "scope") !== stringAt(wanted, "spec", "scope"),
  };
}

function schemaOf(version: Json): Json | undefined {
  return at(version, "schema", "openAPIV3Schema");
}

/** No schema needs to name the first three; an absent status is reported once, as a missing subresource. */
const ALWAYS_KEPT = ["apiVersion", "kind", "metadata", "status"];

/** The topmost fields that the other schema does not have and would prune. */
function prunedFields(ours: Json | undefined, theirs: Json | undefined, path: string): string[] {
  if (at(theirs, "x-kubernetes-preserve-unknown-fields") === true) return [];
  const items = at(ours, "items");
  if (items !== undefined) return prunedFields(items, at(theirs, "items"), `${path}[]`);
  const properties = at(ours, "properties");
  if (!isObject(properties) || isObject(at(theirs, "additionalProperties"))) return [];
  return Object.entries(properties).flatMap(([name, schema]) => {
    const inner = path === "" ? name : `${path}.${name}`;
    const other = at(theirs, "properties", name);
    if (ALWAYS_KEPT.includes(inner)) return [];
    return other === undefined ? [inner] : prunedFields(schema, other, inner);
  });
}

/** Lines: the object, and the consequence. */
export function describeConflictingWebhooks(wanted: JsonObject, live: JsonObject): string[] {
  const kind = stringAt(wanted, "kind") ?? "";
  const lost = kind.startsWith("Mutating") ? "changes no objects" : "checks no objects";
  return [
    `${kind} ${nameOf(wanted)} belongs to ${ownerOf(live)}`,
    `the API server does not call usher while it is unchanged, and usher ${lost}; --take-over replaces its entries`,
  ];
}

/** Lines: the object, and the consequence. The remedy depends on where they are shown. */
export function describeConflictingCrd(crd: ConflictingCrd): string[] {
  const lines = [`CustomResourceDefinition ${crd.name} belongs to ${crd.owner}`];
  if (crd.otherScope) lines.push("its scope differs from usher's, so usher can't read these objects");
  if (crd.versions.length > 0)
    lines.push(`it does not serve ${crd.versions.join(", ")}, so policies of that version can't be created`);
  if (crd.pruned.length > 0)
    lines.push(
      `its schema does not have ${crd.pruned.join(", ")}: the API server prunes these from every policy, so they have no effect`,
    );
  if (crd.noStatus)
    lines.push("it has no status subresource, so usher can't show problems and matches in a policy's status");
  if (lines.length === 1) lines.push("its schema has all that usher reads and writes");
  return lines;
}

/** The version of the usher that wrote an object. */
export function versionOf(object: JsonObject): string {
  // Versions with the `+` of a build were once written with `_`: a label can't hold it, and no other version has one.
  return (stringAt(object, "metadata", "labels", VERSION_LABEL) ?? "").replace("_", "+");
}

/** Whether a newer usher than this one wrote it. Text that is not a version is not newer than any. */
export function isNewer(live: JsonObject, version: string): boolean {
  const theirs = parseVersion(versionOf(live));
  const ours = parseVersion(version);
  return theirs !== undefined && ours !== undefined && compareVersions(theirs, ours) > 0;
}
