import { containsElement, ElementList } from "../evaluate/element-list.ts";
import { type ModuleFinding, type PolicyRef, policyKey } from "../evaluate/finding.ts";
import { canonical, equal, holdsAtMost, type Json, type JsonObject, setOwn } from "../json.ts";
import { atPointer, pointer } from "../path.ts";
import { listRoom, type Origin, spelled } from "./origin.ts";

/** Modules set a text, or a few values together: a note that names a place of more was written by hand. */
const MOST_SET = 64;

/**
 * What an object still carries of what it carried when it was stored. Each place is looked at once, however often it is named:
 * an annotation can name one place ten thousand times.
 */
export class Kept {
  readonly #now: JsonObject;
  readonly #old: JsonObject | undefined;
  readonly #places = new Map<string, boolean>();
  readonly #lists = new Map<string, readonly [now: ElementList, old: ElementList]>();
  readonly #room = { now: listRoom(), old: listRoom() };

  constructor(now: JsonObject, old: JsonObject | undefined) {
    this.#now = now;
    this.#old = old;
  }

  has(place: string): boolean {
    let kept = this.#places.get(place);
    if (kept === undefined) {
      const value = atPointer(this.#now, place);
      kept = value !== undefined && holdsAtMost(value, MOST_SET) && equal(value, atPointer(this.#old, place));
      this.#places.set(place, kept);
    }
    return kept;
  }

  /** Whether a list still has an element, wherever in it: others may have added, removed and moved theirs. */
  hasElement(list: string, element: string): boolean {
    const [now, old] = this.#listAt(list);
    return now.carries(element) && old.carries(element);
  }

  /** The same for the very element, with nothing added to it since. */
  hasSameElement(list: string, element: string): boolean {
    const [now, old] = this.#listAt(list);
    return now.has(element) && old.has(element);
  }

  #listAt(list: string): readonly [now: ElementList, old: ElementList] {
    const known = this.#lists.get(list);
    if (known !== undefined) return known;
    const now = new ElementList(atPointer(this.#now, list), this.#room.now);
    const old = this.#old === this.#now ? now : new ElementList(atPointer(this.#old, list), this.#room.old);
    this.#lists.set(list, [now, old]);
    return [now, old];
  }
}

/** Of more elements than this only those are compared that are the very same: a policy can have as many as a claim. */
const MAX_COMPARED = 64;

/** What came with a request about one policy, asked by each of its findings. */
class Claim {
  readonly #places: ReadonlySet<string>;
  readonly #added: Origin["added"];
  readonly #texts = new Map<string, ReadonlyMap<string, Json>>();

  constructor({ set, added }: Origin) {
    this.#places = new Set(set);
    this.#added = added;
  }

  sets(place: string): boolean {
    return this.#places.has(place);
  }

  /** What is claimed of a list and is all or part of one of these elements. */
  partsOf(elements: readonly Json[], list: string): Json[] {
    const claimed = Object.hasOwn(this.#added, list) ? (this.#added[list] ?? []) : [];
    if (claimed.length === 0 || elements.length === 0) return [];
    if (claimed.length <= MAX_COMPARED)
      return claimed.filter((one) => elements.some((element) => containsElement(element, one)));
    let texts = this.#texts.get(list);
    if (texts === undefined) {
      texts = new Map(claimed.map((one) => [spelled(one), one]));
      this.#texts.set(list, texts);
    }
    return elements.flatMap((element) => texts.get(canonical(element)) ?? []);
  }
}

interface Entry {
  readonly module: string;
  readonly policy: string;
  uid: string | undefined;
  generation: number | undefined;
  readonly set: Set<string>;
  readonly added: Map<string, Json[]>;
}

/** The origins of one object, as they come together: what is kept, what is confirmed, what is new. */
export class OriginIndex {
  readonly #origins = new Map<string, Entry>();
  /** Whose each place is that was set: of several who set one, the last, whose value is there. */
  readonly #setters = new Map<string, Set<string>>();
  #latest: { readonly module: string; readonly policy: PolicyRef; readonly entry: Entry } | undefined;

  set(finding: ModuleFinding, place: string): void {
    const entry = this.#of(finding);
    if (entry !== undefined) this.#put(entry, place);
  }

  #put(entry: Entry, place: string): void {
    this.#setters.get(place)?.delete(place);
    this.#setters.set(place, entry.set.add(place));
  }

  add(finding: ModuleFinding, list: string, value: Json): void {
    const entry = this.#of(finding);
    if (entry !== undefined) addTo(entry, list, value);
  }

  /** Drops what was recorded of this policy and this list so far. */
  forget(finding: ModuleFinding, list: string): void {
    this.#of(finding)?.added.delete(list);
  }

  /** Takes over what is still true of a stored origin. */
  keep(origin: Origin, kept: Kept): void {
    const entry = this.#entry(origin.module, origin.policy, origin.uid, origin.generation);
    for (const place of origin.set) if (kept.has(place)) this.#put(entry, place);
    for (const list of Object.keys(origin.added)) {
      for (const value of origin.added[list] ?? [])
        if (kept.hasElement(list, spelled(value))) addTo(entry, list, value);
    }
  }

  /**
   * A claim that came with the request counts only where the policy itself says "the object says so already". Of an element it may
   * claim a part: what the object had without the policy was not added.
   */
  keepConfirmed(claims: readonly Origin[], findings: readonly ModuleFinding[]): void {
    if (claims.length === 0) return;
    const byPolicy = new Map(claims.map((claim) => [`${claim.module} ${claim.policy}`, new Claim(claim)]));
    for (const finding of findings) {
      if (finding.outcome !== "same" || finding.policy === undefined || finding.path === undefined) continue;
      const where = pointer(finding.path);
      const claim = byPolicy.get(`${finding.module} ${policyKey(finding.policy)}`);
      if (claim?.sets(where)) this.set(finding, where);
      for (const claimed of claim?.partsOf(finding.elements ?? [], where) ?? [])
        this.add(finding, where, claimed);
    }
  }

  /** The entries of each module; nothing where there is none. */
  modules(): Readonly<Record<string, Json>> | undefined {
    const modules: Record<string, Json> = {};
    let module: string | undefined;
    let list: Json[] = [];
    const entries = [...this.#origins.entries()];
    if (entries.length > 1) entries.sort(([a], [b]) => (a < b ? -1 : 1));
    for (const [, origin] of entries) {
      const { set, added, uid, generation } = origin;
      if (set.size === 0 && added.size === 0) continue;
      const entry: Record<string, Json> = { policy: origin.policy };
      if (uid !== undefined) entry["uid"] = uid;
      if (generation !== undefined) entry["generation"] = generation;
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
    const entry = this.#entry(module, policyKey(policy), policy.uid, policy.generation);
    this.#latest = { module, policy, entry };
    return entry;
  }

  /** The entry of a policy. Its uid and generation are those of the latest origin. */
  #entry(module: string, policy: string, uid: string | undefined, generation: number | undefined): Entry {
    const key = `${module} ${policy}`;
    const known = this.#origins.get(key);
    if (known !== undefined) {
      known.uid = uid;
      known.generation = generation;
      return known;
    }
    const entry: Entry = { module, policy, uid, generation, set: new Set(), added: new Map() };
    this.#origins.set(key, entry);
    return entry;
  }
}

function addTo({ added }: Entry, list: string, value: Json): void {
  const values = added.get(list);
  if (values === undefined) added.set(list, [value]);
  else values.push(value);
}

/** The added elements of each list, each once, in one order. */
function listsOf(added: ReadonlyMap<string, readonly Json[]>): JsonObject {
  const lists: Record<string, Json> = {};
  for (const list of [...added.keys()].sort()) {
    const values = added.get(list) ?? [];
    lists[list] = values.length === 1 ? values : distinct(values);
  }
  return lists;
}

function distinct(values: readonly Json[]): Json[] {
  const byText = new Map(values.map((value) => [spelled(value), value]));
  return [...byText.keys()].sort().map((text) => byText.get(text) ?? null);
}
