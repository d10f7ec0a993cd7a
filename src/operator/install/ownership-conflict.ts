import { FIELD_MANAGER } from "../../cluster/controller/planned-writes.ts";
import { at, isObject, type Json, type JsonObject, listAt, stringAt } from "../../core/json.ts";
import { nameOf } from "../../core/kubernetes/object.ts";
import { OWN_LABELS } from "../../core/registration/names.ts";

/** Whether a stored object is usher's: it says so itself, or usher has applied it, whatever was done to its labels since. */
export function isOurs(live: JsonObject): boolean {
  const labels = at(live, "metadata", "labels");
  return (
    Object.entries(OWN_LABELS).every(([key, value]) => stringAt(labels, key) === value) ||
    listAt(live, "metadata", "managedFields").some(
      (entry) => stringAt(entry, "manager") === FIELD_MANAGER && stringAt(entry, "operation") === "Apply",
    )
  );
}

/** Who seems to have made an object, for a person who must ask them. */
export function ownerOf(live: JsonObject): string {
  const labels = at(live, "metadata", "labels");
  const release = stringAt(live, "metadata", "annotations", "meta.helm.sh/release-name");
  const by = stringAt(labels, "app.kubernetes.io/managed-by");
  const part = stringAt(labels, "app.kubernetes.io/name") ?? stringAt(labels, "app");
  const managers = listAt(live, "metadata", "managedFields").flatMap(
    (entry) => stringAt(entry, "manager") ?? [],
  );
  const [first] = managers.filter((manager) => manager !== "kube-apiserver");
  if (release !== undefined) return `the Helm release ${release}`;
  const who = [part, by === undefined ? undefined : `managed by ${by}`].filter((one) => one !== undefined);
  if (who.length > 0) return who.join(", ");
  return first === undefined ? "someone unknown" : `someone with ${first}`;
}

/** What of ours a CRD of someone else's can't hold. */
export interface ConflictingCrd {
  readonly name: string;
  readonly owner: string;
  /** `spec.priority`: the API server drops it from every object without a word. */
  readonly pruned: readonly string[];
  /** Versions of ours that it does not serve. */
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

/** No schema need name the first three; and status is ours to write, so its absence is told once, as a missing subresource. */
const ALWAYS_KEPT = ["apiVersion", "kind", "metadata", "status"];

/** The topmost fields of ours that the other schema does not know and would drop. */
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

/** Sentences: what it is, what that means. */
export function describeConflictingWebhooks(wanted: JsonObject, live: JsonObject): string[] {
  const kind = stringAt(wanted, "kind") ?? "";
  const lost = kind.startsWith("Mutating") ? "changes no objects" : "checks no objects";
  return [
    `${kind} ${nameOf(wanted)} belongs to ${ownerOf(live)}`,
    `usher's webhooks can't be registered beside it: left as it is, the API server does not ask usher, which ${lost}; taken over, its entries go`,
  ];
}

/** Sentences: what it is, what that means. What to do is for whoever shows them to say. */
export function describeConflictingCrd(crd: ConflictingCrd): string[] {
  const lines = [`CustomResourceDefinition ${crd.name} belongs to ${crd.owner}`];
  if (crd.otherScope)
    lines.push("its scope is another than usher's, so usher can't read these objects at all");
  if (crd.versions.length > 0)
    lines.push(`it does not serve ${crd.versions.join(", ")}, so policies of that version can't be written`);
  if (crd.pruned.length > 0)
    lines.push(
      `it does not know ${crd.pruned.join(", ")}: the API server drops these from every policy without a word, so they have no effect`,
    );
  if (crd.noStatus)
    lines.push("it has no status subresource, so usher can't show problems and matches in a policy's status");
  if (lines.length === 1) lines.push("it can hold all that usher writes and reads");
  return lines;
}
