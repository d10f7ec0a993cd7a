import { decodeReview, Undecodable } from "../../admission/review/decode.ts";
import { type AdmissionRequest, supposedRequest, type UserInfo } from "../../core/decision/request.ts";
import type { Source } from "../../core/evaluate/source.ts";
import { isObject, type JsonObject, stringAt } from "../../core/json.ts";
import { admissionDefaults, defaulted } from "../../core/kubernetes/defaults/defaults.ts";
import { groupVersionOf } from "../../core/kubernetes/object.ts";
import { type Problem, problem } from "../../core/policy/problem.ts";
import type { Resources } from "../../files/source/resources.ts";
import type { Manifest } from "../input/input.ts";
import { reviewDeadline } from "./deadline.ts";

export interface Asking {
  /** Of objects without one. @default default */
  readonly namespace: string | undefined;
  readonly user: UserInfo;
  readonly operation: "CREATE" | "UPDATE";
  /** The stored objects that --old names. */
  readonly old: readonly Manifest[];
}

/** The request for one manifest. */
export interface Asked {
  readonly request: AdmissionRequest;
  /** As written, the base of --emit; a DELETE has none. */
  readonly written: JsonObject | undefined;
}

/** Turns manifests into the requests that the API server would send; a recorded AdmissionReview is already one. */
export class Requests {
  readonly #asking: Asking;
  readonly #source: Source;
  readonly #resources: Resources;
  readonly #priorityClasses: readonly JsonObject[];
  #asked = 0;

  private constructor(asking: Asking, source: Source, resources: Resources, classes: JsonObject[]) {
    this.#asking = asking;
    this.#source = source;
    this.#resources = resources;
    this.#priorityClasses = classes;
  }

  static async open(asking: Asking, source: Source, resources: Resources): Promise<Requests> {
    const list = { resource: "priorityclasses.scheduling.k8s.io" };
    const [fact] = await source.fetch([{ list, limit: 1_000, share: 1 }], reviewDeadline());
    const found = fact !== undefined && "found" in fact && Array.isArray(fact.found) ? fact.found : [];
    return new Requests(asking, source, resources, found.filter(isObject));
  }

  async of({ object }: Pick<Manifest, "object">): Promise<Asked | { readonly problem: Problem }> {
    if (object["kind"] === "AdmissionReview") return recorded(object);
    const { operation, user } = this.#asking;
    const apiVersion = stringAt(object, "apiVersion") ?? "";
    const kind = stringAt(object, "kind") ?? "";
    const { group, version } = groupVersionOf(apiVersion);
    const { name: resource, scope } = this.#resources.of(apiVersion, kind);
    // The scope of an unknown kind is unknown; most are namespaced.
    const namespace = scope === "Cluster" ? "" : namespaceOf(object, this.#asking.namespace);
    const name = stringAt(object, "metadata", "name") ?? "";
    const stored = operation === "UPDATE" ? await this.#stored(object, resource, namespace, name) : undefined;
    if (operation === "UPDATE" && stored === undefined) return { problem: unstored(kind, namespace, name) };
    const plural = group === "" ? resource : resource.slice(0, -group.length - 1);
    const request = supposedRequest(
      { group, version, kind, resource: plural },
      this.#defaulted(object, namespace),
      {
        // A new one each: a second request with the same uid is a repeated one.
        uid: `review-${++this.#asked}`,
        name,
        // The namespace of a request for a Namespace is its own name.
        namespace: group === "" && kind === "Namespace" ? name : namespace,
        operation,
        userInfo: user,
        oldObject: stored === undefined ? undefined : this.#defaulted(stored, namespace),
        dryRun: false,
        unvalidated: true,
      },
    );
    return { request, written: this.#written(object, scope === "Namespaced") };
  }

  /** If -n names the namespace, the manifest belongs there wherever it is applied. */
  #written(object: JsonObject, namespaced: boolean): JsonObject {
    const { namespace } = this.#asking;
    const metadata = isObject(object["metadata"]) ? object["metadata"] : {};
    const given = (stringAt(metadata, "namespace") ?? "") !== "";
    if (namespace === undefined || !namespaced || given) return object;
    const { name, ...rest } = metadata;
    return {
      ...object,
      metadata: { ...(name === undefined ? {} : { name }), namespace, ...rest },
    };
  }

  /** A copy, because a draft edits in place, with the API server's defaults that matter to policies. */
  #defaulted(object: JsonObject, namespace: string): JsonObject {
    const copy = structuredClone(object) as JsonObject;
    const metadata = isObject(copy["metadata"]) ? copy["metadata"] : {};
    const placed = namespace === "" ? copy : { ...copy, metadata: { ...metadata, namespace } };
    const { group } = groupVersionOf(stringAt(object, "apiVersion") ?? "");
    const { workloads } = this.#source.assembly.installation;
    const workload = workloads.byKind(group, stringAt(object, "kind") ?? "");
    if (workload === undefined) return placed;
    const filled = defaulted(placed, workload);
    if (workload.template.length > 0) return filled;
    const { operation } = this.#asking;
    return admissionDefaults(filled, { priorityClasses: this.#priorityClasses, operation });
  }

  /** The stored object of an UPDATE, from --old or else from the source. */
  async #stored(
    object: JsonObject,
    resource: string,
    namespace: string,
    name: string,
  ): Promise<JsonObject | undefined> {
    const apiVersion = stringAt(object, "apiVersion") ?? "";
    const kind = stringAt(object, "kind") ?? "";
    if (name === "") return undefined;
    const { group } = groupVersionOf(apiVersion);
    const same = this.#asking.old.find(
      ({ object: old }) =>
        stringAt(old, "kind") === kind &&
        groupVersionOf(stringAt(old, "apiVersion") ?? "").group === group &&
        stringAt(old, "metadata", "name") === name &&
        (namespace === "" || namespaceOf(old, this.#asking.namespace) === namespace),
    );
    if (same !== undefined) return same.object;
    const get = { resource, ...(namespace === "" ? {} : { namespace }), name };
    const [fact] = await this.#source.fetch([{ get, live: true }], reviewDeadline());
    return fact !== undefined && "found" in fact && isObject(fact.found) ? fact.found : undefined;
  }
}

function namespaceOf(object: JsonObject, otherwise = "default"): string {
  const written = stringAt(object, "metadata", "namespace") ?? "";
  return written === "" ? otherwise : written;
}

/** The request of a recorded AdmissionReview. */
export function recorded(review: JsonObject): Asked | { readonly problem: Problem } {
  const decoded = decodeReview(Buffer.from(JSON.stringify(review)));
  if (decoded instanceof Undecodable) return { problem: problem([], decoded.message) };
  const { object } = decoded;
  return { request: decoded, written: object === undefined ? undefined : structuredClone(object) };
}

function unstored(kind: string, namespace: string, name: string): Problem {
  if (name === "") return problem(["metadata"], `UPDATE requires the name of the ${kind}`);
  const shown = `${kind} ${namespace === "" ? "" : `${namespace}/`}${name}`;
  return problem(
    ["metadata", "name"],
    `UPDATE requires the stored ${shown}: provide it with --old, or add it to the source`,
  );
}
