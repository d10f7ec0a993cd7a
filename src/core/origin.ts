import { at, isObject, type Json, type JsonObject, stringAt } from "./json.ts";

/** The one annotation, on the top object, that says which policy put what there. */
export const PROVENANCE = "usher.dev/provenance";

/**
 * No value that a policy adds to a list comes near this depth (a pod affinity term has 6). An annotation has room for 100,000
 * levels, and JSON.stringify gives up before 5,000.
 */
const DEPTH_LIMIT = 32;

/** What one policy put into an object. */
export interface Origin {
  readonly module: string;
  /** `ClusterPodSchedulingPolicy/etcd-pool` */
  readonly policy: string;
  readonly uid?: string;
  readonly generation?: number;
  /** Places that were set, as JSON pointers. */
  readonly set: readonly string[];
  /** List elements that were added, by the list's pointer. An index would not survive other people's edits. */
  readonly added: Readonly<Record<string, readonly Json[]>>;
}

/** Reads the annotation of an object; anything that is not ours or not readable is no provenance. */
export function provenanceOf(object: JsonObject | undefined): Origin[] {
  const text = stringAt(object, "metadata", "annotations", PROVENANCE);
  if (text === undefined) return [];
  let parsed: Json;
  try {
    parsed = JSON.parse(text);
  } catch {
    return [];
  }
  if (!isObject(parsed)) return [];
  const origins: Origin[] = [];
  for (const module of Object.keys(parsed)) {
    const entries = parsed[module];
    // Anyone can write an annotation: a name such as `__proto__` is none of our modules.
    if (!Array.isArray(entries) || !/^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?$/.test(module)) continue;
    for (const entry of entries) {
      const policy = stringAt(entry, "policy");
      if (policy === undefined) continue;
      const uid = stringAt(entry, "uid");
      const generation = at(entry, "generation");
      const set = at(entry, "set");
      const added = at(entry, "added");
      origins.push({
        module,
        policy,
        ...(uid === undefined ? {} : { uid }),
        ...(Number.isSafeInteger(generation) ? { generation: Number(generation) } : {}),
        set: Array.isArray(set) ? set.filter(isPointer) : [],
        added: isObject(added) ? listsOf(added) : {},
      });
    }
  }
  return origins;
}

function isPointer(item: Json): item is string {
  return typeof item === "string" && item.startsWith("/");
}

function listsOf(added: JsonObject): Record<string, readonly Json[]> {
  const lists: Record<string, readonly Json[]> = {};
  for (const key of Object.keys(added)) {
    const list = added[key];
    if (Array.isArray(list) && isPointer(key)) lists[key] = list.filter(shallow);
  }
  return lists;
}

/** Whether a value is of a depth that a note is kept of. */
export function shallow(value: Json | undefined): boolean {
  return within(value, DEPTH_LIMIT);
}

function within(value: Json | undefined, depth: number): boolean {
  if (typeof value !== "object" || value === null) return true;
  return depth > 0 && Object.values(value).every((inner) => within(inner, depth - 1));
}
