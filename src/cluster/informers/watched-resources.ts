import { resourceName } from "../../core/evaluate/request.ts";
import { type Declarations, type Read, readsOf } from "../../core/module/module.ts";
import { kindResource } from "../../core/policy/kind.ts";
import { project } from "../../core/view/projection.ts";
import { withoutManagedFields } from "../client/api-response.ts";
import type { Prune } from "./watch-event.ts";

/** A resource that modules read, over all modules. */
export interface WatchedResource {
  readonly resource: string;
  /** Whether a module can't work without it. */
  readonly required: boolean;
  readonly leaderOnly: boolean;
  readonly labelSelector?: string;
  readonly only?: { readonly name: string };
  /** No module reads its objects. */
  readonly presence?: boolean;
  readonly prune: Prune;
}

/** The resources that modules read from the API server, each once. */
export function watchedResources(declarations: Declarations): WatchedResource[] {
  const watched = new Map<string, WatchedResource>();
  const reads = Map.groupBy(readsOf(declarations), resourceName);
  for (const [resource, all] of reads) watched.set(resource, merged(resource, all));
  for (const kind of declarations.modules.flatMap(({ kinds }) => kinds)) {
    // Kinds of files are not in the API server. Of others all fields are kept, whichever else modules read.
    if (kind.standing === "file") continue;
    const resource = kindResource(kind);
    // Where the CRD is registered only at times, the kind may not be served.
    const required = kind.registered === undefined;
    watched.set(resource, { resource, required, leaderOnly: false, prune: withoutManagedFields });
  }
  return [...watched.values()];
}

function merged(resource: string, reads: readonly Read[]): WatchedResource {
  const paths = reads.flatMap(({ keep }) => keep);
  const selectors = new Set(reads.map(({ labelSelector }) => labelSelector ?? ""));
  const [selector = ""] = selectors;
  const names = new Set(reads.map(({ name }) => name));
  const [name] = names;
  return {
    resource,
    required: reads.some(({ optional }) => optional !== true),
    leaderOnly: reads.every(({ leaderOnly }) => leaderOnly === true),
    // Where selectors differ, everything is read, so that each module sees its part.
    ...(selectors.size === 1 && selector !== "" ? { labelSelector: selector } : {}),
    ...(names.size === 1 && name !== undefined ? { only: { name } } : {}),
    ...(reads.every(({ presence }) => presence === true) ? { presence: true } : {}),
    prune: (object) => project(object, paths),
  };
}
