import { at, equal, isObject, type Json, type JsonObject, listAt, stringAt } from "../../../src/core/json.ts";
import { defaulted } from "../../../src/core/kubernetes/defaults/defaults.ts";
import { checkDnsLabel, checkSubdomain } from "../../../src/core/kubernetes/names.ts";
import { nameOf } from "../../../src/core/kubernetes/object.ts";
import { BUILT_IN_WORKLOADS } from "../../../src/core/kubernetes/workloads.ts";
import { type Resource, storedName } from "./resources.ts";
import { type FieldProblem, invalid } from "./status.ts";

/** What the API server does to an object of a kind before it stores it. Pure. */

/** Fields of a Go type that are never left out, with their zero values. */
const INITIAL: Readonly<Record<string, JsonObject>> = {
  Lease: { spec: {} },
  Namespace: { spec: {}, status: {} },
  Node: {
    spec: {},
    status: {
      daemonEndpoints: { kubeletEndpoint: { Port: 0 } },
      nodeInfo: Object.fromEntries(
        [
          "machineID",
          "systemUUID",
          "bootID",
          "kernelVersion",
          "osImage",
          "containerRuntimeVersion",
          "kubeletVersion",
          "kubeProxyVersion",
          "operatingSystem",
          "architecture",
        ].map((name) => [name, ""]),
      ),
    },
  },
};

export function initialOf({ kind, custom, status }: Resource): JsonObject {
  if (custom) return {};
  return INITIAL[kind] ?? (status ? { spec: {}, status: {} } : {});
}

/** Maps and lists of the metadata that Go leaves out when they are empty. */
const OMITTED = ["labels", "annotations", "finalizers", "ownerReferences"];

/** The object as the API server decodes it: without null and empty fields, with the defaults of its kind. */
export function decoded(resource: Resource, object: JsonObject): JsonObject {
  const given = isObject(object["metadata"]) ? object["metadata"] : {};
  const metadata = Object.fromEntries(
    Object.entries(given).filter(
      ([name, value]) => value !== null && value !== "" && !(OMITTED.includes(name) && isEmptyValue(value)),
    ),
  );
  const whole: JsonObject = { ...object, metadata };
  if (resource.custom) return resource.prune(whole);
  const workload = BUILT_IN_WORKLOADS.find(
    (one) => one.group === resource.group && one.resource === resource.resource,
  );
  const filled = fill(withoutEmpty(whole), INITIAL[resource.kind] ?? {}) as JsonObject;
  return withDefaults(resource, workload === undefined ? filled : defaulted(filled, workload));
}

function isEmptyValue(value: Json | undefined): boolean {
  return Array.isArray(value) ? value.length === 0 : isObject(value) && Object.keys(value).length === 0;
}

/** Go leaves out empty maps and lists, and fields that are null, at the top of most kinds. */
function withoutEmpty(object: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(object).filter(
      ([name, value]) => value !== null && (name === "metadata" || !isEmptyValue(value)),
    ),
  );
}

function fill(value: Json | undefined, initial: Json): Json {
  if (value === undefined || !isObject(initial)) return value ?? initial;
  if (!isObject(value)) return value;
  const result: Record<string, Json> = { ...(value as Record<string, Json>) };
  for (const [name, one] of Object.entries(initial)) result[name] = fill(result[name], one ?? null);
  return result;
}

function withDefaults(resource: Resource, object: JsonObject): JsonObject {
  switch (resource.kind) {
    case "Secret": {
      const { stringData, ...secret } = object;
      const encoded = Object.entries(isObject(stringData) ? stringData : {}).map(([key, value]) => [
        key,
        Buffer.from(String(value)).toString("base64"),
      ]);
      const data = { ...(secret["data"] as JsonObject | undefined), ...Object.fromEntries(encoded) };
      return { ...secret, ...(isEmptyValue(data) ? {} : { data }), type: secret["type"] ?? "Opaque" };
    }
    case "Namespace": {
      const metadata = object["metadata"] as JsonObject;
      const labels = { ...(metadata["labels"] as JsonObject), "kubernetes.io/metadata.name": nameOf(object) };
      return nameOf(object) === "" ? object : { ...object, metadata: { ...metadata, labels } };
    }
    case "MutatingWebhookConfiguration":
    case "ValidatingWebhookConfiguration": {
      const webhooks = listAt(object, "webhooks").map((entry) =>
        isObject(entry) ? defaultedWebhook(entry, resource.kind) : entry,
      );
      return webhooks.length === 0 ? object : { ...object, webhooks };
    }
    default:
      return object;
  }
}

function defaultedWebhook(entry: JsonObject, kind: string): JsonObject {
  const service = at(entry, "clientConfig", "service");
  return {
    failurePolicy: "Fail",
    matchPolicy: "Equivalent",
    namespaceSelector: {},
    objectSelector: {},
    timeoutSeconds: 10,
    ...(kind === "MutatingWebhookConfiguration" ? { reinvocationPolicy: "Never" } : {}),
    ...entry,
    ...(isObject(service)
      ? { clientConfig: { ...(entry["clientConfig"] as JsonObject), service: { port: 443, ...service } } }
      : {}),
    ...(entry["rules"] === undefined
      ? {}
      : { rules: listAt(entry, "rules").map((rule) => ({ scope: "*", ...(rule as JsonObject) })) }),
  };
}

/** A new object as it is stored. Throws if its name is invalid. */
export function prepareCreate(
  resource: Resource,
  object: JsonObject,
  { uid, time }: { readonly uid: string; readonly time: string },
): JsonObject {
  const name = nameOf(object);
  if (name === "")
    throw invalid(resource, "", {
      field: "metadata.name",
      message: "Required value: name or generateName is required",
      reason: "FieldValueRequired",
    });
  const checkName =
    resource.kind === "Namespace" || resource.kind === "Service" ? checkDnsLabel : checkSubdomain;
  const problem = hasFreeName(resource) ? undefined : checkName(name);
  if (problem !== undefined)
    throw invalid(resource, name, {
      field: "metadata.name",
      message: `Invalid value: ${JSON.stringify(name)}: ${problem}`,
    });
  const {
    deletionTimestamp: _deleted,
    deletionGracePeriodSeconds: _grace,
    resourceVersion: _version,
    selfLink: _link,
    generation: _generation,
    ...metadata
  } = object["metadata"] as JsonObject;
  const { status, ...rest } = object;
  // Kinds with a status subresource start without a status; Nodes and Pods are exceptions of the API.
  const keepsStatus = !resource.status || resource.kind === "Node";
  const initialStatus = at(initialOf(resource), "status");
  const created: JsonObject = {
    ...rest,
    ...(keepsStatus
      ? status === undefined
        ? {}
        : { status }
      : initialStatus === undefined
        ? {}
        : { status: initialStatus }),
    metadata: {
      ...metadata,
      uid,
      creationTimestamp: time,
      ...(resource.generation ? { generation: 1 } : {}),
    },
  };
  if (resource.kind === "Namespace")
    return { ...created, spec: { finalizers: ["kubernetes"] }, status: { phase: "Active" } };
  return resource.kind === "Pod"
    ? { ...created, status: { phase: "Pending", qosClass: "BestEffort" } }
    : created;
}

function hasFreeName({ group }: Resource): boolean {
  return group === "rbac.authorization.k8s.io";
}

/** A changed object as it is stored: each endpoint changes its part only. Throws if the change is not allowed. */
export function prepareUpdate(
  resource: Resource,
  subresource: string,
  live: JsonObject,
  object: JsonObject,
): JsonObject {
  const merged = ownPart(resource, subresource, live, object);
  const before = live["metadata"] as JsonObject;
  const sent = merged["metadata"] as JsonObject;
  const name = nameOf(live);
  const problems: FieldProblem[] = [];
  const isDeleted = before["deletionTimestamp"] !== undefined;
  const fresh = listAt(sent, "finalizers").filter((one) => !listAt(before, "finalizers").includes(one));
  if (isDeleted && fresh.length > 0) {
    const list = `[]string{${fresh.map((one) => JSON.stringify(one)).join(", ")}}`;
    problems.push({
      field: "metadata.finalizers",
      message: `Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers ${list}`,
      reason: "FieldValueForbidden",
    });
  }
  const uid = stringAt(sent, "uid") ?? "";
  if (uid !== "" && uid !== before["uid"])
    problems.push({
      field: "metadata.uid",
      message: `Invalid value: ${JSON.stringify(uid)}: field is immutable`,
    });
  // The metadata of custom resources is validated twice.
  if (problems.length > 0) throw invalid(resource, name, ...problems, ...(resource.custom ? problems : []));
  const kept = Object.fromEntries(
    ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation"].map(
      (field) => [field, before[field]],
    ),
  );
  const metadata: Record<string, Json | undefined> = { ...sent, ...kept };
  for (const [field, value] of Object.entries(metadata)) if (value === undefined) delete metadata[field];
  const changed = !equal(specOf(resource, live), specOf(resource, merged));
  if (resource.generation && changed) metadata["generation"] = Number(before["generation"] ?? 0) + 1;
  return { ...merged, metadata: metadata as JsonObject };
}

/** Everything that counts for metadata.generation. */
function specOf({ status: hasStatus, kind }: Resource, object: JsonObject): JsonObject {
  const { metadata: _metadata, apiVersion: _version, kind: _kind, status, ...rest } = object;
  return hasStatus || kind === "Pod" ? rest : { ...rest, ...(status === undefined ? {} : { status }) };
}

function ownPart(resource: Resource, subresource: string, live: JsonObject, object: JsonObject): JsonObject {
  const { status: sent, ...rest } = object;
  const status = live["status"];
  if (subresource === "")
    return resource.status ? { ...rest, ...(status === undefined ? {} : { status }) } : object;
  if (subresource === "finalize") return { ...live, spec: object["spec"] ?? {} };
  const metadata = object["metadata"] as JsonObject;
  const stored = live["metadata"] as JsonObject;
  const { managedFields } = metadata;
  const written: JsonObject = { ...live, ...(sent === undefined ? {} : { status: sent }) };
  const { status: _status, ...cleared } = written;
  const whole = sent === undefined ? cleared : written;
  // Nodes and other built-in kinds take labels and annotations by their status, too: the kubelet uses it.
  return resource.custom
    ? {
        ...whole,
        metadata: {
          ...stored,
          ...(managedFields === undefined ? {} : { managedFields }),
        },
      }
    : { ...whole, metadata };
}

/** Fields that an endpoint does not write, and that its field managers do not own. */
export function ignoredFields(resource: Resource, subresource: string): string[][] {
  if (!resource.status && subresource === "") return [];
  if (subresource === "") return [["status"]];
  return resource.custom ? [["spec"], ["metadata"]] : [["spec"]];
}

export function isLastFinalizerGone(resource: Resource, object: JsonObject): boolean {
  const metadata = object["metadata"] as JsonObject;
  if (metadata["deletionTimestamp"] === undefined || listAt(metadata, "finalizers").length > 0) return false;
  if (storedName(resource) === "namespaces") return listAt(object, "spec", "finalizers").length === 0;
  return Number(metadata["deletionGracePeriodSeconds"] ?? 0) === 0;
}

/** Whether two states differ in nothing but the times of managedFields. */
export function isSameState(a: JsonObject, b: JsonObject): boolean {
  return equal(withoutRecord(a), withoutRecord(b)) && equal(recordOf(a), recordOf(b));
}

function withoutRecord(object: JsonObject): JsonObject {
  const { managedFields: _record, resourceVersion: _version, ...metadata } = object["metadata"] as JsonObject;
  return { ...object, metadata };
}

/** The managedFields by their text, without times. */
function recordOf(object: JsonObject): Json {
  return listAt(object, "metadata", "managedFields")
    .map((entry) => JSON.stringify({ ...(entry as JsonObject), time: "" }))
    .sort();
}
