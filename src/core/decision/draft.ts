import { at, copyOf, equal, isObject, type Json, type JsonObject, own, setOwn } from "../json.ts";
import { type Path, pointer } from "../path.ts";
import type { Finding, ModuleFinding } from "./finding.ts";

type Container = Record<string, Json | undefined> | Json[];

/** The changes of one policy to an object. */
export interface Origin {
  readonly module: string;
  /** `ClusterPodSchedulingPolicy/etcd-pool` */
  readonly policy: string;
  readonly uid?: string;
  readonly generation?: number;
  /** Places that were set, as JSON pointers. */
  readonly set: readonly string[];
  /** List elements that were added, by the list's pointer. An index would not survive other clients' edits. */
  readonly added: Readonly<Record<string, readonly Json[]>>;
}

/** The meaning of an edit for provenance, beside the policy of its finding. */
export interface EditProvenance {
  /** Of a list that is set whole: the elements that the policy has in it. They are recorded as added, and the list not as set. */
  readonly adds?: readonly Json[];
  /** Injections that the edit removes. If present afterwards, it belongs to whichever module wrote it. */
  readonly takesBack?: readonly Origin[];
}

/** One recorded edit. `slot` is the shallowest place that it changed: a created parent, or the value itself. */
export interface Edit {
  readonly kind: "set" | "append" | "remove";
  readonly path: Path;
  readonly value: Json | undefined;
  readonly slot: Path;
  /** Whether the slot existed before this edit, even as null: only an absent slot is added. */
  readonly existed: boolean;
  /** The value of the slot before this edit. Nothing changes it afterwards: a replaced value is no longer part of the object. */
  readonly previous: Json | undefined;
  readonly provenance: EditProvenance | undefined;
  readonly finding: ModuleFinding | undefined;
}

interface Undo {
  readonly container: Container;
  readonly key: string | number;
  readonly held: boolean;
  readonly previous: Json | undefined;
}

/**
 * The object of a request while modules work on it. It reads as the object with all edits so far; each edit is recorded
 * with the finding that explains it, and can be undone when a round is repeated. The parsed object itself is edited in
 * place: a copy would cost as much as the whole exchange, and a rebuilt object would lose unknown fields.
 */
export class Draft {
  readonly #root: JsonObject;
  readonly #old: JsonObject | undefined;
  readonly #edits: Edit[] = [];
  readonly #undos: Undo[] = [];
  /** The module whose findings are being recorded. Set by evaluate-hooks.ts. */
  author = "";

  constructor(object: JsonObject, old?: JsonObject) {
    this.#root = object;
    this.#old = old;
  }

  /** The current object. Read only: edits go through `set`, `append` and `remove`. */
  get object(): JsonObject {
    return this.#root;
  }

  /** The stored object, on UPDATE. */
  get old(): JsonObject | undefined {
    return this.#old;
  }

  get edits(): readonly Edit[] {
    return this.#edits;
  }

  get(...path: Path): Json | undefined {
    return at(this.#root, ...path);
  }

  /** Whether any of these places differs from the stored object. On CREATE everything does. */
  changed(paths: readonly Path[]): boolean {
    if (this.#old === undefined) return true;
    for (const path of paths) if (!equal(at(this.#old, ...path), at(this.#root, ...path))) return true;
    return false;
  }

  /** Sets a value, creating missing parents. Returns false without a change if the path leads through another type. */
  set(path: Path, value: Json, finding: Finding | undefined, provenance?: EditProvenance): boolean {
    return this.#edit("set", path, value, finding, provenance);
  }

  /** Adds to the end of a list, creating the list if needed. */
  append(path: Path, value: Json, finding: Finding | undefined): boolean {
    const list = at(this.#root, ...path) ?? [];
    return Array.isArray(list) && this.#edit("append", [...path, list.length], value, finding);
  }

  /** Removes a member of an object. List elements stay: removing one would shift the indexes of other edits. */
  remove(path: Path, finding: Finding | undefined, provenance?: EditProvenance): boolean {
    return this.#edit("remove", path, undefined, finding, provenance);
  }

  /** A point to return to with `undo`. */
  mark(): number {
    return this.#edits.length;
  }

  /** Undoes all edits since the mark, newest first. */
  undo(mark: number): void {
    while (this.#edits.length > mark) {
      this.#edits.pop();
      const undo = this.#undos.pop();
      if (undo === undefined) return;
      const { container, key, held, previous } = undo;
      if (Array.isArray(container)) {
        if (held) container[key as number] = previous ?? null;
        else container.length = key as number;
      } else if (held) setOwn(container, String(key), previous ?? null);
      else delete container[String(key)];
    }
  }

  #edit(
    kind: Edit["kind"],
    path: Path,
    value: Json | undefined,
    finding: Finding | undefined,
    provenance?: EditProvenance,
  ): boolean {
    let container: Container = this.#root as Container;
    let depth = 0;
    // Down to the deepest container that exists.
    for (; depth < path.length - 1; depth++) {
      const next: Json | undefined = read(container, path[depth]);
      if (next === undefined || next === null) break;
      if (typeof next !== "object") return false;
      container = next as Container;
    }
    const key = path[depth];
    const rest = path.slice(depth + 1);
    if (key === undefined || !fits(container, key, kind === "append" && rest.length === 0)) return false;
    const previous = read(container, key);
    const held = Array.isArray(container) ? Number(key) < container.length : Object.hasOwn(container, key);
    if (kind === "remove") {
      if (rest.length > 0 || !held || Array.isArray(container)) return false;
      delete container[String(key)];
    } else {
      // A copy: later edits here must not change the policy or the other path that the value comes from.
      const made = nest(rest, copyOf(value ?? null), kind);
      if (made === undefined) return false;
      if (Array.isArray(container)) container[Number(key)] = made;
      else setOwn(container, String(key), made);
    }
    this.#undos.push({ container, key, held, previous });
    this.#edits.push({
      kind,
      path,
      value,
      slot: path.slice(0, depth + 1),
      existed: held,
      previous,
      provenance,
      finding: finding === undefined ? undefined : { ...finding, module: this.author },
    });
    return true;
  }

  /** The pointer of an edit's slot, for grouping edits. */
  static slotOf(edit: Edit): string {
    return pointer(edit.slot);
  }
}

function read(container: Container, key: string | number | undefined): Json | undefined {
  if (key === undefined) return undefined;
  if (Array.isArray(container)) return typeof key === "number" ? container[key] : undefined;
  return typeof key === "string" ? own(container, key) : undefined;
}

/** Keys go into objects and indexes into lists; only an append may name the index behind the last element. */
function fits(container: Container, key: string | number, appends: boolean): boolean {
  if (!Array.isArray(container)) return isObject(container) && typeof key === "string";
  if (typeof key !== "number" || !Number.isInteger(key) || key < 0) return false;
  return appends ? key === container.length : key < container.length;
}

/** The value inside the missing parents. Only an append creates a list, and only the one that it appends to. */
function nest(path: Path, value: Json, kind: Edit["kind"]): Json | undefined {
  let made = value;
  for (let i = path.length - 1; i >= 0; i--) {
    const key = path[i];
    if (kind === "append" && i === path.length - 1) {
      made = [made];
      continue;
    }
    if (typeof key !== "string") return undefined;
    const parent: Record<string, Json> = {};
    setOwn(parent, key, made);
    made = parent;
  }
  return made;
}
