import { containsElement, ElementList } from "../evaluate/element-list.ts";
import { type ModuleFinding, type PolicyRef, policyKey } from "../evaluate/finding.ts";
import { canonical, equal, type Json, type JsonObject, setOwn } from "../json.ts";
import { atPointer, type Path, pointer } from "../path.ts";
import type { Origin } from "./origin.ts";

/**
 * What an object still carries of what it carried when it was stored. Each place is looked at once, however often it is named:
 * an annotation can name one place ten thousand times.
 */
export class Kept {
  readonly #now: JsonObject;
  readonly #old: JsonObject | undefined;
  readonly #places = new Map<string, boolean>();
  readonly #lists = new Map<string, readonly [now: ElementList, old: ElementList]>();

  constructor(now: JsonObject, old: JsonObject | undefined) {
    this.#now = now;
    this.#old = old;
  }

  has(place: string): boolean {
    let kept = this.#places.get(place);
    if (kept === undefined) {
      const value = atPointer(this.#now, place);
      kept = value !== undefined && equal(value, atPointer(this.#old, place));
      this.#places.set(place, kept);
    }
    return kept;
  }

  /** Whether a list still has an element, wherever in it: others may have added, removed and moved theirs. */
  hasElement(list: string, element: string): boolean {
    let both = this.#lists.get(list);
    if (both === undefined) {
      both = [new ElementList(atPointer(this.#now, list)), new ElementList(atPointer(this.#old, list))];
      this.#lists.set(list, both);
    }
    return both[0].carries(element) && both[1].carries(element);
  }
}

interface Entry {
  readonly origin: Origin;
  readonly set: Set<string>;
  readonly added: Map<string, Map<string, Json>>;
}

/** The origins of one object, as they come together: what is kept, what is confirmed, what is new. */
export class OriginIndex {
  readonly #origins = new Map<string, Entry>();
  /** Whose each place is that was set: of several who set one, the last, whose value is there. */
  readonly #setters = new Map<string, Set<string>>();
  #latest: { readonly module: string; readonly policy: PolicyRef; readonly entry: Entry } | undefined;

  set(finding: ModuleFinding, path: Path): void {
    const entry = this.#of(finding);
    if (entry !== undefined) this.#put(entry, pointer(path));
  }

  #put(entry: Entry, place: string): void {
    this.#setters.get(place)?.delete(place);
    this.#setters.set(place, entry.set.add(place));
  }

  add(finding: ModuleFinding, list: Path, value: Json): void {
    const added = this.#of(finding)?.added;
    const where = pointer(list);
    const values = added?.get(where) ?? new Map<string, Json>();
    values.set(canonical(value), value);
    added?.set(where, values);
  }

  /** Nothing that was noted of this policy and this list so far is true any more. */
  forget(finding: ModuleFinding, list: Path): void {
    this.#of(finding)?.added.delete(pointer(list));
  }

  /** Takes over what is still true of a stored origin. */
  keep(origin: Origin, kept: Kept): void {
    const entry = this.#entry({ ...origin, set: [], added: {} });
    for (const place of origin.set) if (kept.has(place)) this.#put(entry, place);
    for (const list of Object.keys(origin.added)) {
      const values = entry.added.get(list) ?? new Map<string, Json>();
      for (const value of origin.added[list] ?? []) {
        const element = canonical(value);
        if (kept.hasElement(list, element)) values.set(element, value);
      }
      if (values.size > 0) entry.added.set(list, values);
    }
  }

  /**
   * A claim that came with the request counts only where the policy itself says "the object says so already". Of an element it may
   * claim a part: what the object had without the policy was not added.
   */
  keepConfirmed(claims: readonly Origin[], findings: readonly ModuleFinding[]): void {
    if (claims.length === 0) return;
    for (const finding of findings) {
      if (finding.outcome !== "same" || finding.policy === undefined || finding.path === undefined) continue;
      const where = pointer(finding.path);
      const policy = policyKey(finding.policy);
      const claim = claims.find((one) => one.module === finding.module && one.policy === policy);
      if (claim?.set.includes(where)) this.set(finding, finding.path);
      for (const claimed of claim?.added[where] ?? []) {
        if (finding.elements?.some((element) => containsElement(element, claimed)))
          this.add(finding, finding.path, claimed);
      }
    }
  }

  /** The entries of each module; nothing where there is none. */
  modules(): Readonly<Record<string, Json>> | undefined {
    const modules: Record<string, Json> = {};
    let module: string | undefined;
    let list: Json[] = [];
    const entries = [...this.#origins.entries()];
    if (entries.length > 1) entries.sort(([a], [b]) => (a < b ? -1 : 1));
    for (const [, { origin, set, added }] of entries) {
      if (set.size === 0 && added.size === 0) continue;
      const entry: Record<string, Json> = { policy: origin.policy };
      if (origin.uid !== undefined) entry["uid"] = origin.uid;
      if (origin.generation !== undefined) entry["generation"] = origin.generation;
      if (set.size > 0) entry["set"] = [...set].sort();
      if (added.size > 0) entry["added"] = listsOf(added);
      // The entries of a module stand together, for they are sorted by it first.
      if (origin.module !== module) {
        module = origin.module;
        list = [];
        setOwn(modules, module, list);
      }
      list.push(entry);
    }
    return module === undefined ? undefined : modules;
  }

  /** A policy often sets several places: it is one and the same in all findings of it. */
  #of({ module, policy }: ModuleFinding): Entry | undefined {
    if (policy === undefined) return undefined;
    const latest = this.#latest;
    if (latest !== undefined && latest.policy === policy && latest.module === module) return latest.entry;
    const { uid, generation } = policy;
    const entry = this.#entry({
      module,
      policy: policyKey(policy),
      ...(uid === undefined ? {} : { uid }),
      ...(generation === undefined ? {} : { generation }),
      set: [],
      added: {},
    });
    this.#latest = { module, policy, entry };
    return entry;
  }

  #entry(origin: Origin): Entry {
    const key = `${origin.module} ${origin.policy}`;
    const known = this.#origins.get(key);
    const entry: Entry = { origin, set: known?.set ?? new Set(), added: known?.added ?? new Map() };
    this.#origins.set(key, entry);
    return entry;
  }
}

/** The added elements of each list, in one order. */
function listsOf(added: ReadonlyMap<string, ReadonlyMap<string, Json>>): JsonObject {
  const lists: Record<string, Json> = {};
  for (const list of [...added.keys()].sort()) {
    const values = added.get(list) ?? new Map<string, Json>();
    setOwn(
      lists,
      list,
      [...values.keys()].sort().map((key) => values.get(key) ?? null),
    );
  }
  return lists;
}
