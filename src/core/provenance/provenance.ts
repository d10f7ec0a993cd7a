import type { Draft, Edit, Origin } from "../decision/draft.ts";
import type { ModuleFinding } from "../decision/finding.ts";
import { at, canonical, equal, isObject, type Json, type JsonObject, textOf } from "../json.ts";
import { controllerOf, isBeingDeleted } from "../kubernetes/object.ts";
import { atPointer, type Path, pointer } from "../path.ts";
import { type PolicyRef, policyKey } from "../policy/policy-ref.ts";
import {
  annotationOf,
  annotationText,
  asStored,
  digestOf,
  type ListRoom,
  listRoom,
  PROVENANCE,
  type Provenance,
  type Replaced,
  readableElements,
  readProvenance,
  takesRoom,
} from "./annotation.ts";
import { isReapply, versionOf } from "./reapply.ts";

/**
 * The API server refuses an object whose annotations exceed 262,144 bytes together, even with a fail-open hook
 * (TotalAnnotationSizeLimitB). Above this the annotation is omitted rather than the object refused.
 */
export const ANNOTATIONS_LIMIT = 262_144;

/**
 * Writes the annotation from the edits: which policy set which path and added which elements, and the replaced values.
 * On UPDATE the stored object's annotation is the base, as far as it is still valid. The annotation of the request is
 * trusted only if a policy confirms it in this evaluation, because any client can write an annotation; the part of a
 * module with a separate call stays, and that call validates it. Returns true if the draft has its provenance now, or
 * needs none.
 */
export function writeProvenance(
  draft: Draft,
  findings: readonly ModuleFinding[],
  old: JsonObject | undefined,
  isAskedApart: (module: string) => boolean = () => false,
): boolean {
  const before = annotationOf(old);
  const present = annotationOf(draft.object);
  if (draft.edits.length === 0) {
    if (before === undefined && present === undefined) return true;
    // A controller copies its owner's annotations (a Deployment's onto its ReplicaSets) and would write them again after each correction.
    if (controllerOf(draft.object) !== undefined) return true;
    // Skip objects that are being deleted: a patch could block the removal of finalizers.
    if (isBeingDeleted(draft.object)) return true;
  }
  const stored = readProvenance(old);
  const sent = present === before ? stored : readProvenance(draft.object);
  const record = new ProvenanceRecord(draft, stored, sent);
  record.keep(stored.origins, new Unchanged(draft.object, old));
  record.keepConfirmed(sent.origins, findings);
  const apart = sent.origins.filter(({ module }) => isAskedApart(module));
  if (apart.length > 0) record.keep(apart, new Unchanged(draft.object, draft.object));
  for (const edit of draft.edits) record.add(edit);
  const origins = record.origins();
  const now: Provenance = { origins, was: record.replaced(origins), reappliedFrom: undefined };
  const bare = annotationText(now);
  const isNew = bare !== annotationText({ ...stored, reappliedFrom: undefined });
  // The mark of an earlier reapply has no meaning any more. It is removed with the next change, and does not cause one.
  if (!isNew && present === before) return true;
  const isMarked = (isNew || apart.length > 0) && isReapply(draft);
  const text = isMarked ? annotationText({ ...now, reappliedFrom: versionOf(old) }) : bare;
  return write(draft, text, present);
}

function write(draft: Draft, text: string | undefined, present: string | undefined): boolean {
  const path: Path = ["metadata", "annotations", PROVENANCE];
  if (text === present) return true;
  if (text === undefined) return draft.remove(path, undefined);
  if (fits(draft.object, text)) return draft.set(path, text, undefined);
  // The client's annotation must not stay in place of the right one.
  draft.remove(path, undefined);
  return false;
}

interface Entry extends Omit<Origin, "set" | "added"> {
  readonly set: Set<string>;
  /** By list, then by canonical text. */
  readonly added: Map<string, Map<string, Json>>;
}

/** The provenance of one object while it is built: kept, confirmed and new entries. */
class ProvenanceRecord {
  readonly #draft: Draft;
  readonly #stored: Provenance;
  readonly #sent: Provenance;
  readonly #entries = new Map<string, Entry>();
  /** The value of each place before the first policy of this evaluation wrote it. */
  readonly #before = new Map<string, Json | undefined>();
  /** The policies that wrote each place in this evaluation. */
  readonly #writers = new Map<string, Set<string>>();
  readonly #removed: ReadonlySet<string>;

  constructor(draft: Draft, stored: Provenance, sent: Provenance) {
    this.#draft = draft;
    this.#stored = stored;
    this.#sent = sent;
    const reverted = draft.edits.flatMap(({ provenance }) => provenance?.takesBack ?? []);
    this.#removed = new Set(reverted.flatMap(partsOf));
  }

  /** Keeps the parts of origins that are still valid and that no edit removed. */
  keep(origins: readonly Origin[], unchanged: Unchanged): void {
    for (const origin of origins) {
      const places = origin.set.filter(
        (place) => this.#stays(origin, place) && (unchanged.has(place) || this.#isStillEmpty(place)),
      );
      const lists = Object.entries(origin.added).flatMap(([list, elements]) => {
        const stay = elements.filter((one) => this.#stays(origin, `${list} ${canonical(one)}`));
        const left = this.#present(list, stay, unchanged);
        return left.length === 0 ? [] : [{ list, left }];
      });
      if (places.length === 0 && lists.length === 0) continue;
      const entry = this.#entryOf(origin);
      for (const place of places) entry.set.add(place);
      for (const { list, left } of lists) for (const element of left) addTo(entry, list, element);
    }
  }

  /**
   * Keeps a claim of the request about a policy if the policy itself finds its value in the object. Of the stored
   * annotation, only the kept part counts: it follows the policy's generation.
   */
  keepConfirmed(claims: readonly Origin[], findings: readonly ModuleFinding[]): void {
    if (claims.length === 0) return;
    const byPolicy = new Map(claims.map((claim) => [`${claim.module} ${claim.policy}`, claim]));
    for (const { module, policy, outcome, path, elements = [] } of findings) {
      if (outcome !== "same" || policy === undefined || path === undefined) continue;
      const claim = byPolicy.get(`${module} ${policyKey(policy)}`);
      if (claim === undefined) continue;
      const where = pointer(path);
      const claimed = Object.hasOwn(claim.added, where) ? (claim.added[where] ?? []) : [];
      const confirmed = claimed.length === 0 ? [] : elements.map(tokensOf);
      const left = claimed.filter((one) => includesElement(confirmed, one));
      if (left.length === 0 && !claim.set.includes(where)) continue;
      if (claims === this.#stored.origins && !this.#has(module, policy, where)) continue;
      const entry = this.#entryOf({ ...versioned(policy), module });
      if (claim.set.includes(where)) entry.set.add(where);
      for (const element of left) addTo(entry, where, element);
    }
  }

  /** Records an edit that a policy made. */
  add({ kind, path, value, finding, provenance, slot, previous }: Edit): void {
    if (finding?.policy === undefined || finding.recordedByModule) return;
    const entry = this.#entryOf({ ...versioned(finding.policy), module: finding.module });
    if (kind === "append") {
      addTo(entry, pointer(path.slice(0, -1)), value ?? null);
      return;
    }
    const place = pointer(path);
    this.#writers.set(place, (this.#writers.get(place) ?? new Set()).add(entry.policy));
    if (!this.#before.has(place)) this.#before.set(place, slot.length === path.length ? previous : undefined);
    if (kind === "set" && provenance?.adds !== undefined) {
      entry.added.delete(place);
      for (const element of provenance.adds) addTo(entry, place, element);
      return;
    }
    // Of several policies that set a scalar the last one's is present; a list or an object has something of each.
    if (typeof value !== "object")
      for (const other of this.#entries.values()) if (other !== entry) other.set.delete(place);
    entry.set.add(place);
  }

  /** The changes of policies that the draft has in the end. */
  origins(): Origin[] {
    const now = new Unchanged(this.#draft.object, this.#draft.object);
    return [...this.#entries.values()].flatMap(({ set, added, ...entry }) => {
      const places = [...set].filter(
        (place) =>
          atPointer(this.#draft.object, place) !== undefined ||
          this.#before.get(place) !== undefined ||
          this.#isStillEmpty(place),
      );
      const lists = [...added].flatMap(([list, elements]) => {
        const left = this.#present(list, [...elements.values()], now);
        return left.length === 0 ? [] : [[list, left] as const];
      });
      if (places.length === 0 && lists.length === 0) return [];
      return [{ ...entry, set: places, added: Object.fromEntries(lists) }];
    });
  }

  /** The elements of a policy that a list has. If the policy wrote the whole list they count together: they are alternatives. */
  #present(list: string, elements: readonly Json[], object: Unchanged): readonly Json[] {
    const isWhole = [this.#before, this.#stored.was, this.#sent.was].some((whole) => whole.has(list));
    const found = elements.filter((element) => object.hasElement(list, element));
    return isWhole && found.length > 0 ? elements : found;
  }

  /** The values of these origins' paths before: as replaced now, or as recorded for the current value. */
  replaced(origins: readonly Origin[]): ReadonlyMap<string, Replaced> {
    const replaced = new Map<string, Replaced>();
    const room = listRoom();
    for (const place of new Set(origins.flatMap(({ set, added }) => [...set, ...Object.keys(added)]))) {
      const known = [this.#stored.was.get(place), this.#sent.was.get(place)].filter(
        (one) => one !== undefined,
      );
      const isWritten = this.#before.has(place);
      if (!isWritten && known.length === 0) continue;
      const value = atPointer(this.#draft.object, place);
      if (!takesRoom(value, room)) continue;
      const now = digestOf(value);
      const entry =
        known.find((one) => one.now === now) ?? (isWritten ? this.#written(place, now) : undefined);
      // A scalar that was absent before is recorded by its path alone.
      if (entry !== undefined && (entry.value !== undefined || typeof value === "object"))
        replaced.set(place, entry);
    }
    return replaced;
  }

  /** The value of a path before the edits; for one that policies had written before, its value before those, if known. */
  #written(place: string, now: string): Replaced | undefined {
    const before = this.#before.get(place);
    const replaced = this.#stored.was.get(place);
    if (replaced !== undefined && replaced.now === digestOf(before)) return { ...replaced, now };
    const hasOthers = [...this.#entries.values()].some(
      (entry) =>
        (entry.set.has(place) || entry.added.has(place)) && !this.#writers.get(place)?.has(entry.policy),
    );
    return hasOthers
      ? undefined
      : { ...(before === undefined || before === null ? {} : { value: asStored(before) }), now };
  }

  /** Whether a policy emptied a list of the stored object and it is still empty. The API server stores empty lists as absent. */
  #isStillEmpty(place: string): boolean {
    const replaced = this.#stored.was.get(place);
    if (replaced?.value === undefined || replaced.now !== digestOf(undefined)) return false;
    return [this.#draft.old, this.#draft.object].every((one) => {
      const value = atPointer(one, place);
      return value === undefined || (Array.isArray(value) && value.length === 0);
    });
  }

  #has(module: string, policy: PolicyRef, place: string): boolean {
    const entry = this.#entries.get(`${module} ${policyKey(policy)}`);
    return entry !== undefined && (entry.set.has(place) || entry.added.has(place));
  }

  #stays({ module, policy }: Origin, part: string): boolean {
    return !this.#removed.has(`${module} ${policy} ${part}`);
  }

  /** The entry of a policy, with the uid and generation of its latest origin. */
  #entryOf({ module, policy, uid, generation }: Omit<Origin, "set" | "added">): Entry {
    const key = `${module} ${policy}`;
    const { set = new Set<string>(), added = new Map<string, Map<string, Json>>() } =
      this.#entries.get(key) ?? {};
    const version = {
      ...(uid === undefined ? {} : { uid }),
      ...(generation === undefined ? {} : { generation }),
    };
    const entry = { module, policy, ...version, set, added };
    this.#entries.set(key, entry);
    return entry;
  }
}

function versioned(policy: PolicyRef): Omit<Origin, "module" | "set" | "added"> {
  const { uid, generation } = policy;
  return {
    policy: policyKey(policy),
    ...(uid === undefined ? {} : { uid }),
    ...(generation === undefined ? {} : { generation }),
  };
}

/** A string for each path and element of an origin. */
function partsOf({ module, policy, set, added }: Origin): string[] {
  const elements = Object.entries(added).flatMap(([list, all]) =>
    all.map((one) => `${list} ${canonical(one)}`),
  );
  return [...set, ...elements].map((part) => `${module} ${policy} ${part}`);
}

function addTo({ added }: Entry, list: string, element: Json): void {
  const elements = added.get(list) ?? new Map<string, Json>();
  added.set(list, elements.set(canonical(element), element));
}

/** The parts of the stored object that an object still has. Each path is compared once, however often the annotation names it. */
export class Unchanged {
  readonly #now: JsonObject;
  readonly #old: JsonObject | undefined;
  readonly #places = new Map<string, boolean>();
  readonly #lists = new Map<string, readonly ReadList[]>();
  readonly #rooms: readonly [ListRoom, ListRoom, ListRoom] = [listRoom(), listRoom(), listRoom()];

  constructor(now: JsonObject, old: JsonObject | undefined) {
    this.#now = now;
    this.#old = old;
  }

  has(place: string): boolean {
    let same = this.#places.get(place);
    if (same === undefined) {
      const [room] = this.#rooms;
      const value = atPointer(this.#now, place);
      same = value !== undefined && takesRoom(value, room) && equal(value, atPointer(this.#old, place));
      this.#places.set(place, same);
    }
    return same;
  }

  /**
   * Whether a list still has an element, at any index: others may have added, removed and moved elements. An element with further items in
   * its lists counts: a term to which others have added requirements still has those of the policy.
   */
  hasElement(list: string, element: Json): boolean {
    const text = canonical(element);
    return this.#listAt(list).every((one) => one.has(text) || one.includes(element));
  }

  /** Whether a list still has an equal element, at any index. */
  hasSameElement(list: string, element: Json): boolean {
    const text = canonical(element);
    return this.#listAt(list).every((one) => one.has(text));
  }

  #listAt(list: string): readonly ReadList[] {
    const known = this.#lists.get(list);
    if (known !== undefined) return known;
    const [, nowRoom, oldRoom] = this.#rooms;
    const now = new ReadList(atPointer(this.#now, list), nowRoom);
    const both = this.#old === this.#now ? [now] : [now, new ReadList(atPointer(this.#old, list), oldRoom)];
    this.#lists.set(list, both);
    return both;
  }
}

/** Lists in which policies combine elements have at most this many. Longer ones are searched for an equal element only. */
const MAX_COMBINED = 128;

class ReadList {
  readonly #elements: readonly Json[];
  readonly #texts: ReadonlySet<string>;
  /** Read at the first element that the list does not have as it is: most lists have all of them. */
  #tokens: readonly Tokens[] | undefined;

  constructor(list: Json | undefined, room: ListRoom) {
    this.#elements = readableElements(list, room) ?? [];
    this.#texts = new Set(this.#elements.map(canonical));
  }

  /** Whether an element has this canonical text. */
  has(text: string): boolean {
    return this.#texts.has(text);
  }

  /** Whether an element has all of this one. */
  includes(element: Json): boolean {
    if (this.#elements.length > MAX_COMBINED) return false;
    this.#tokens ??= this.#elements.filter(isObject).map(tokensOf);
    return includesElement(this.#tokens, element);
  }
}

/** An object as strings: one for all members that are not lists, one for each item of those that are. */
type Tokens = ReadonlySet<string>;

function tokensOf(element: Json): Tokens {
  if (!isObject(element)) return new Set([canonical(element)]);
  const members = Object.entries(element);
  const rest = members.filter(([, value]) => !Array.isArray(value));
  const tokens = new Set([canonical(Object.fromEntries(rest))]);
  for (const [name, value] of members)
    if (Array.isArray(value)) for (const item of value) tokens.add(`${name} ${canonical(item)}`);
  return tokens;
}

/** Whether one of these has every token of an element. */
function includesElement(elements: readonly Tokens[], element: Json): boolean {
  if (elements.length === 0) return false;
  const wanted = tokensOf(element);
  return elements.some((tokens) => wanted.isSubsetOf(tokens));
}

/** Whether all annotations together stay within the limit with this one. */
function fits(object: JsonObject, text: string): boolean {
  const annotations = at(object, "metadata", "annotations");
  const others = isObject(annotations) ? annotations : {};
  let characters = PROVENANCE.length + text.length;
  for (const key in others) characters += key.length + textOf(others[key]).length;
  // A character takes at most three bytes, so the bytes rarely need to be counted.
  if (3 * characters <= ANNOTATIONS_LIMIT) return true;
  let bytes = Buffer.byteLength(PROVENANCE) + Buffer.byteLength(text);
  for (const key of Object.keys(others)) {
    if (key !== PROVENANCE) bytes += Buffer.byteLength(key) + Buffer.byteLength(textOf(others[key]));
  }
  return bytes <= ANNOTATIONS_LIMIT;
}
