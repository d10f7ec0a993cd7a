import { decodeReview, Undecodable } from "../../admission/decode.ts";
import type { Assembly } from "../../core/assembly.ts";
import { at, isObject, type JsonObject, stringAt } from "../../core/json.ts";
import { admissionDefaults, defaulted } from "../../core/kubernetes/defaults.ts";
import { groupVersionOf } from "../../core/kubernetes/object.ts";
import type { AdmissionRequest } from "../../core/request.ts";
import { Resources } from "../../files/resources.ts";
import type { FileSource } from "../../files/source.ts";
import { CallError } from "../exit.ts";
import type { Manifest } from "./input.ts";
import { OFFLINE } from "./offline.ts";

export interface Asking {
  readonly namespace: string;
  readonly username: string;
  readonly groups: readonly string[];
  readonly operation: "CREATE" | "UPDATE";
  /** The stored objects that --old names. */
  readonly old: readonly Manifest[];
}

/** A manifest becomes the request that the API server would send for it; a recorded AdmissionReview is one already. */
export async function requestFor(
  manifest: Manifest,
  asking: Asking,
  source: FileSource,
): Promise<AdmissionRequest | { readonly problem: string }> {
  const { object, where } = manifest;
  if (object["kind"] === "AdmissionReview") {
    const decoded = decodeReview(Buffer.from(JSON.stringify(object)));
    return decoded instanceof Undecodable ? { problem: `${where}: ${decoded.message}` } : decoded;
  }
  const apiVersion = stringAt(object, "apiVersion") ?? "";
  const kind = stringAt(object, "kind") ?? "";
  const { name: resource, scope } = new Resources(source.assembly.modules).of(apiVersion, kind);
  const { group, version } = groupVersionOf(apiVersion);
  // Of a kind that nobody knows it can't be said whether it has a namespace; most have.
  const namespace =
    scope === "Cluster" ? "" : (stringAt(object, "metadata", "namespace") ?? asking.namespace);
  const name = stringAt(object, "metadata", "name") ?? "";
  const stored =
    asking.operation === "UPDATE" ? storedObject(manifest, asking, source, namespace, name) : undefined;
  const priorityClasses = await priorityClassesOf(source);
  const seen = (one: JsonObject) =>
    asTheServerSees(one, namespace, source.assembly, asking.operation, priorityClasses);
  return {
    uid: "review",
    kind: { group, version, kind },
    resource: { group, version, resource: group === "" ? resource : resource.slice(0, -group.length - 1) },
    subResource: "",
    name,
    // The namespace of a request for a Namespace is its own name.
    namespace: group === "" && kind === "Namespace" ? name : namespace,
    operation: asking.operation,
    userInfo: { username: asking.username, groups: [...asking.groups, "system:authenticated"] },
    object: seen(object),
    oldObject: stored === undefined ? undefined : seen(stored),
    dryRun: false,
    options: undefined,
  };
}

/** Read once for a whole review would be enough, but asking files costs nothing. */
async function priorityClassesOf(source: FileSource): Promise<JsonObject[]> {
  const resource = "priorityclasses.scheduling.k8s.io";
  const [fact] = await source.fetch([{ list: { resource }, limit: 1_000, share: 1 }], OFFLINE);
  const found = fact !== undefined && "found" in fact && Array.isArray(fact.found) ? fact.found : [];
  return found.filter(isObject);
}

/** A copy of its own, since a draft edits in place, with the defaults that change what we see. */
function asTheServerSees(
  object: JsonObject,
  namespace: string,
  assembly: Assembly,
  operation: "CREATE" | "UPDATE",
  priorityClasses: readonly JsonObject[],
): JsonObject {
  const copy = structuredClone(object) as JsonObject;
  const metadata = isObject(copy["metadata"]) ? copy["metadata"] : {};
  const placed = namespace === "" ? copy : { ...copy, metadata: { ...metadata, namespace } };
  const workload = workloadOf(placed, assembly);
  if (workload === undefined) return placed;
  const filled = defaulted(placed, workload);
  return workload.template.length > 0 ? filled : admissionDefaults(filled, { priorityClasses, operation });
}

function workloadOf(object: JsonObject, assembly: Assembly) {
  const { group } = groupVersionOf(stringAt(object, "apiVersion") ?? "");
  return assembly.installation.workloads.byKind(group, stringAt(object, "kind") ?? "");
}

/** An UPDATE is judged against what is stored: from --old, else from the source. */
function storedObject(
  manifest: Manifest,
  { old }: Asking,
  source: FileSource,
  namespace: string,
  name: string,
): JsonObject {
  const apiVersion = stringAt(manifest.object, "apiVersion") ?? "";
  const kind = stringAt(manifest.object, "kind") ?? "";
  const same = old.find(
    ({ object }) =>
      stringAt(object, "kind") === kind &&
      groupVersionOf(stringAt(object, "apiVersion") ?? "").group === groupVersionOf(apiVersion).group &&
      at(object, "metadata", "name") === name &&
      (stringAt(object, "metadata", "namespace") ?? namespace) === namespace,
  );
  const stored = same?.object ?? source.find(apiVersion, kind, namespace, name);
  if (stored === undefined) {
    throw new CallError(
      `${manifest.where}: UPDATE needs the stored ${kind} ${name}: name a file that has it with --old, or put it into the source`,
    );
  }
  return stored;
}
