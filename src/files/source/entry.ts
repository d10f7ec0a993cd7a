import { at, isObject, type Json, type JsonObject, stringAt } from "../../core/json.ts";
import { NAMESPACE_NAME } from "../../core/kubernetes/object.ts";
import type { Path } from "../../core/path.ts";
import { CONFIGURATION_NAME, configurationPath, configurationsIn } from "../../core/policy/configuration.ts";
import { kindResource } from "../../core/policy/kind.ts";
import {
  idle,
  likelyMistake,
  PROBLEM,
  type Problem,
  problem,
  WRITE_IN_QUOTES,
} from "../../core/policy/problem.ts";
import { isSuite } from "../../core/suite/suite.ts";
import { namespaceIn, type Resource, type Resources } from "./resources.ts";

/** Where an object is. */
export interface EntryPlace {
  /** The file's name within the source. */
  readonly file: string;
  /** Which document of the file, from 0, and where in it. */
  readonly document: number;
  readonly path: Path;
  /** Its position among the objects of the file: of two equal ones, the first counts. */
  readonly ordinal: number;
}

/** One object in one place of one file. */
export interface Entry {
  /** Replaced if the file changed around the object. */
  place: EntryPlace;
  readonly resource: Resource;
  readonly namespace: string;
  readonly name: string;
  readonly object: JsonObject;
  /**
   * A policy with errors. It is evaluated like a stored one in a cluster: unknown fields are pruned; with any other
   * error its failure mode decides.
   */
  invalid?: "pruned" | "failing";
}

/** The user-facing name of an object: `Node cp-0`, `Pod shop/web`. */
export function describeObject(object: JsonObject): string {
  const namespace = stringAt(object, "metadata", "namespace");
  const name = stringAt(object, "metadata", "name") ?? "";
  return `${stringAt(object, "kind") ?? "object"} ${namespace === undefined ? "" : `${namespace}/`}${name}`;
}

/** Whether an entry is a policy, which reports count separately from other objects. */
export function isPolicy({ resource }: Entry): boolean {
  return resource.policy?.standing === "resource";
}

/** Whether an entry with errors still counts without its invalid parts. */
export function isPartial(entry: Entry): boolean {
  return isPolicy(entry) || entry.resource.policy?.partial === true;
}

/** The same object has the same key everywhere. */
export function entryKey(entry: Pick<Entry, "resource" | "namespace" | "name">): string {
  return `${entry.resource.name} ${entry.namespace}/${entry.name}`;
}

/** A problem of a value and its base position: an object, or the document. */
export interface EntryProblem {
  readonly entry:
    | Entry
    | { readonly place: EntryPlace; readonly resource?: undefined; readonly object?: undefined };
  readonly problem: Problem;
}

/** A suite may be beside the policies that it tests, and the configuration, which --config names. */
function isBesidePolicies(value: Json): boolean {
  const isOwn = (stringAt(value, "apiVersion") ?? "").startsWith("usher.dev/");
  return isSuite(value) || (isOwn && stringAt(value, "kind") === "UsherConfiguration");
}

/** The objects that a value describes: itself, or the configurations in it. */
export function entriesOf(
  value: Json,
  place: EntryPlace,
  resources: Resources,
): { readonly entries: readonly Entry[]; readonly problems: readonly EntryProblem[] } {
  if (isBesidePolicies(value)) return { entries: [], problems: [] };
  const configurations = isObject(value) ? configurationsIn(value, resources.configurations) : undefined;
  if (configurations === undefined) {
    const { entry, problems } = entryOf(value, place, resources);
    return {
      entries: entry === undefined ? [] : [entry],
      problems: problems.map((one) => ({ entry: entry ?? { place }, problem: one })),
    };
  }
  const entries = configurations.found.map(
    ({ kind, path, object }, i): Entry => ({
      place: { ...place, path: [...place.path, ...path], ordinal: place.ordinal + i },
      resource: { name: kindResource(kind), scope: "Cluster", policy: kind },
      namespace: "",
      name: CONFIGURATION_NAME,
      object,
    }),
  );
  return {
    entries,
    problems: configurations.problems.map((one) => ({ entry: { place }, problem: one })),
  };
}

/** A field of an entry's object as written in its file, relative to the entry. */
export function writtenPath(entry: EntryProblem["entry"], path: Path): Path {
  return entry.resource?.policy?.configuration === undefined ? path : configurationPath(path);
}

/** A value as an object of the cluster, as the API server would store it; without an entry if it is invalid. */
export function entryOf(
  value: Json,
  place: EntryPlace,
  resources: Resources,
): { readonly entry: Entry | undefined; readonly problems: readonly Problem[] } {
  if (!isObject(value)) {
    return {
      entry: undefined,
      problems: [problem([], "not a Kubernetes object: apiVersion, kind and metadata are required")],
    };
  }
  const problems = [
    ...checkString(value, ["apiVersion"]),
    ...checkString(value, ["kind"]),
    ...checkString(value, ["metadata", "name"]),
    ...checkStringMap(value, ["metadata", "labels"]),
    ...checkStringMap(value, ["metadata", "annotations"]),
  ];
  const namespace = at(value, "metadata", "namespace");
  if (namespace !== undefined && namespace !== null && typeof namespace !== "string") {
    problems.push(notString(["metadata", "namespace"], namespace));
  }
  if (problems.length > 0) return { entry: undefined, problems };
  const kind = stringAt(value, "kind") ?? "";
  const resource = resources.of(stringAt(value, "apiVersion") ?? "", kind);
  if (resource.scope === "Cluster" && typeof namespace === "string") {
    problems.push({
      ...idle(PROBLEM.noEffect, ["metadata", "namespace"], `has no effect: ${kind} is cluster-scoped`),
      fix: { remove: true },
    });
  }
  const unknown = resources.unknownKind(stringAt(value, "apiVersion") ?? "", kind);
  if (unknown !== undefined) problems.push(unknown);
  if (resource.policy?.scope === "Namespaced" && (namespace ?? "") === "")
    problems.push(likelyMistake(["metadata", "namespace"], "is missing: the policy is in namespace default"));
  const stored = { namespace: namespaceIn(resource, value), name: stringAt(value, "metadata", "name") ?? "" };
  const object = asStored(value, resource, stored);
  return { entry: { place, resource, ...stored, object }, problems };
}

function checkString(object: JsonObject, path: Path): Problem[] {
  const found = at(object, ...path);
  if (found === undefined || found === null || found === "") return [problem(path, "is required")];
  return typeof found === "string" ? [] : [notString(path, found)];
}

/** Labels and annotations are strings; YAML reads an unquoted `yes` or `1` as something else. */
export function checkStringMap(object: JsonObject, path: Path): Problem[] {
  const found = at(object, ...path);
  if (found === undefined || found === null) return [];
  if (!isObject(found)) return [problem(path, "must be a map of strings")];
  const problems: Problem[] = [];
  for (const [key, value] of Object.entries(found)) {
    if (typeof value !== "string" && value !== undefined) problems.push(notString([...path, key], value));
  }
  return problems;
}

function notString(path: Path, value: Json): Problem {
  return problem(path, `must be a string, got ${JSON.stringify(value).slice(0, 60)}`, WRITE_IN_QUOTES);
}

/** The fields that the API server adds when it stores an object. Objects without missing fields are returned unchanged. */
function asStored(
  object: JsonObject,
  resource: Resource,
  stored: { readonly namespace: string; readonly name: string },
): JsonObject {
  const metadata = at(object, "metadata");
  if (!isObject(metadata)) return object;
  if (resource.name === "namespaces") {
    const labels = isObject(metadata["labels"]) ? metadata["labels"] : {};
    const own = { ...labels, [NAMESPACE_NAME]: stored.name };
    return { ...object, metadata: { ...without(metadata, "namespace"), labels: own } };
  }
  if (resource.scope === "Cluster" && Object.hasOwn(metadata, "namespace")) {
    return { ...object, metadata: without(metadata, "namespace") };
  }
  if (stored.namespace !== "" && metadata["namespace"] !== stored.namespace) {
    return { ...object, metadata: { ...metadata, namespace: stored.namespace } };
  }
  return object;
}

function without(object: JsonObject, key: string): JsonObject {
  const { [key]: _left, ...rest } = object;
  return rest;
}
