import type { Commit } from "../../core/decision/decision.ts";
import type { Fact, Need } from "../../core/decision/need.ts";
import type { AdmissionRequest } from "../../core/decision/request.ts";
import type { CommitResult } from "../../core/evaluate/evaluate.ts";
import type { Source } from "../../core/evaluate/source.ts";
import { at, isObject, type JsonObject } from "../../core/json.ts";
import type { Stage } from "../../core/review/review.ts";
import { objectKey } from "../../core/view/view.ts";
import { entryOf } from "../../files/source/entry.ts";
import type { Resources } from "../../files/source/resources.ts";
import { reviewDeadline } from "./deadline.ts";

const NOWHERE = { file: "", document: 0, path: [], ordinal: 0 };

/**
 * The objects of one review, in sequence, on an unchanged source: an allowed object, and the records that it is
 * admitted with, count for later ones. Policies do not: in a cluster they take a moment, so the order would decide.
 */
export class Rehearsal implements Stage {
  readonly source: Source;
  readonly #resources: Resources;
  readonly #written = new Map<string, JsonObject>();
  #version = 0;

  constructor(source: Source, resources: Resources) {
    this.source = source;
    this.#resources = resources;
  }

  get assembly(): Source["assembly"] {
    return this.source.assembly;
  }

  async fetch(needs: readonly Need[]): Promise<readonly Fact[]> {
    const facts = await this.source.fetch(needs, reviewDeadline());
    return needs.map((need, i) => this.#fact(need) ?? facts[i] ?? { failed: "not fetched" });
  }

  async commit({ resource, namespace = "", name, object, resourceVersion }: Commit): Promise<CommitResult> {
    const key = keyOf(resource, namespace, name);
    const before = this.#written.get(key);
    if (before !== undefined && at(before, "metadata", "resourceVersion") !== resourceVersion)
      return "conflict";
    const metadata = isObject(object["metadata"]) ? object["metadata"] : {};
    this.#version += 1;
    const place = namespace === "" ? { name } : { name, namespace };
    const version = { ...place, resourceVersion: `review-${this.#version}` };
    this.#written.set(key, { ...object, metadata: { ...metadata, ...version } });
    return "done";
  }

  /** An allowed object exists from now on. One with a generated name can't be looked up. */
  admit({ operation, dryRun, subResource, name }: AdmissionRequest, object: JsonObject): void {
    if (dryRun || subResource !== "" || name === "" || (operation !== "CREATE" && operation !== "UPDATE"))
      return;
    const { entry } = entryOf(structuredClone(object) as JsonObject, NOWHERE, this.#resources);
    if (entry === undefined || entry.resource.policy !== undefined) return;
    const { resource, namespace, name: stored, object: whole } = entry;
    this.#written.set(keyOf(resource.name, namespace, stored), whole);
    // Namespaces and nodes: inputs of decisions about other objects. Hooks are computed again after each change of the
    // view, which thousands of pods must not cause.
    if (resource.scope === "Cluster")
      this.source.assembly.apply([{ resource: resource.name, namespace, name: stored, object: whole }]);
  }

  #fact(need: Need): Fact | undefined {
    if (!("get" in need)) return undefined;
    const { resource, namespace = "", name } = need.get;
    const found = this.#written.get(keyOf(resource, namespace, name));
    return found === undefined ? undefined : { found, complete: true };
  }
}

function keyOf(resource: string, namespace: string, name: string): string {
  return `${resource} ${objectKey(namespace, name)}`;
}
