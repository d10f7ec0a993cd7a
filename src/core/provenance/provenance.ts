import type { Draft } from "../evaluate/draft.ts";
import { ElementList } from "../evaluate/element-list.ts";
import type { ModuleFinding } from "../evaluate/finding.ts";
import { at, canonical, equal, isObject, type Json, type JsonObject, stringAt, textOf } from "../json.ts";
import { controllerOf, isBeingDeleted } from "../kubernetes/object.ts";
import { type Path, pointer } from "../path.ts";
import {
  bareNote,
  listRoom,
  noteFrom,
  type Origin,
  PROVENANCE,
  provenanceOf,
  sentProvenance,
  spelled,
} from "./origin.ts";
import { Kept, OriginIndex } from "./origin-index.ts";

/**
 * An object whose annotations exceed 262,144 bytes together is refused by the API server, even where our hook is open
 * (TotalAnnotationSizeLimitB). Above this the explanation is left out rather than the object.
 */
export const ANNOTATIONS_LIMIT = 262_144;

/**
 * Writes the annotation from the edits. On UPDATE what the stored object says of itself is kept as long as it is still true;
 * what the client sends is believed only where a policy says the same of itself in this very evaluation, because anyone can
 * write an annotation. Of a module that is asked by a call of its own the note stays as it is: that call judges it. True where the draft
 * carries its provenance now, or needs none.
 */
export function writeProvenance(
  draft: Draft,
  findings: readonly ModuleFinding[],
  old: JsonObject | undefined,
  isAskedApart: (module: string) => boolean = () => false,
): boolean {
  const stored = provenanceOf(old);
  const claimed = sentProvenance(draft.object, old);
  if (draft.edits.length === 0) {
    if (stored.length === 0 && claimed.length === 0) return true;
    // A controller copies its owner's annotations (a Deployment's onto its ReplicaSets) and would write again and again
    // what we took out or corrected.
    if (controllerOf(draft.object) !== undefined) return true;
    // Nobody reads the note of what is going, and its finalizers must come off undisturbed.
    if (isBeingDeleted(draft.object)) return true;
  }
  const index = new OriginIndex();
  if (stored.length > 0 || claimed.length > 0) {
    const kept = new Kept(draft.object, old);
    const { disowned } = draft;
    for (const origin of stored) index.keep(ownedStill(origin, disowned), kept);
    index.keepConfirmed(
      claimed.map((origin) => ownedStill(origin, disowned)),
      findings,
    );
  }
  const apart = claimed.filter(({ module }) => isAskedApart(module));
  if (apart.length > 0) {
    const now = new Kept(draft.object, draft.object);
    for (const origin of apart) index.keep(ownedStill(origin, draft.disowned), now);
  }
  const lists = new AddedTo(draft);
  for (const edit of draft.edits) {
    if (edit.finding?.policy === undefined || edit.finding.recordedByModule || edit.kind === "remove")
      continue;
    // A later module may have removed it again.
    if (draft.get(...edit.path) === undefined) continue;
    if (edit.kind === "append") {
      const list = edit.path.slice(0, -1);
      const value = edit.value ?? null;
      const where = pointer(list);
      // Where the list was written whole since, the element may be at another index or gone.
      if (lists.carry(list, where, value)) index.add(edit.finding, where, value);
    } else if (edit.adds === undefined) index.set(edit.finding, pointer(edit.path));
    else {
      const where = pointer(edit.path);
      if (edit.adds.all) index.forget(edit.finding, where);
      // A later edit may have left an element out again.
      for (const element of edit.adds.elements)
        if (lists.carry(edit.path, where, element)) index.add(edit.finding, where, element);
    }
  }
  const modules = index.modules();
  const path: Path = ["metadata", "annotations", PROVENANCE];
  const present = stringAt(draft.object, ...path);
  const bare = noteFrom(modules ?? {}, undefined);
  const before = stringAt(old, ...path);
  const news = bare !== bareNote(before);
  // A mark of an earlier update means nothing any more. It goes with the next change, and is no reason for one.
  if (!news && present === before) return true;
  const mark = news ? draft.renewed : undefined;
  if (modules === undefined && mark === undefined)
    return present === undefined || draft.remove(path, undefined);
  const text = mark === undefined ? bare : noteFrom(modules ?? {}, mark);
  if (text === present) return true;
  if (!fits(draft.object, text)) {
    // Where the note has no room, what the client wrote in its place must not pass for it.
    draft.remove(path, undefined);
    return false;
  }
  return draft.set(path, text, undefined);
}

/** Lists up to this length are searched element by element; longer ones are spelled out once. */
const SHORT_LIST = 16;

/** The lists that edits have added to, as they are in the end. */
class AddedTo {
  readonly #draft: Draft;
  readonly #lists = new Map<string, ElementList>();
  readonly #room = listRoom();

  constructor(draft: Draft) {
    this.#draft = draft;
  }

  /** `where` is the pointer of `path`. Nearly always the element is as it was added; only else is the list spelled out. */
  carry(path: Path, where: string, element: Json): boolean {
    const list = this.#draft.get(...path);
    if (Array.isArray(list) && list.length <= SHORT_LIST)
      for (let i = list.length - 1; i >= 0; i--) if (equal(list[i], element)) return true;
    let elements = this.#lists.get(where);
    if (elements === undefined) {
      elements = new ElementList(list, this.#room);
      this.#lists.set(where, elements);
    }
    return elements.carries(canonical(element));
  }
}

/** What is left of an origin without what was taken out. */
function ownedStill(origin: Origin, disowned: readonly Origin[]): Origin {
  let left = origin;
  for (const { module, policy, set, added } of disowned) {
    if (module !== origin.module || policy !== origin.policy) continue;
    const places = new Set(set);
    const lists = Object.entries(left.added).map(([list, elements]) => {
      const gone = new Set(added[list]?.map(spelled));
      return [list, elements.filter((element) => !gone.has(spelled(element)))] as const;
    });
    left = {
      ...left,
      set: left.set.filter((place) => !places.has(place)),
      added: Object.fromEntries(lists),
    };
  }
  return left;
}

/** Whether all annotations together stay within the limit with this one. */
function fits(object: JsonObject, text: string): boolean {
  const annotations = at(object, "metadata", "annotations");
  const others = isObject(annotations) ? annotations : {};
  let characters = PROVENANCE.length + text.length;
  for (const key in others) characters += key.length + textOf(others[key]).length;
  // No character takes more than three bytes, so nearly always the bytes need not be counted.
  if (3 * characters <= ANNOTATIONS_LIMIT) return true;
  let bytes = Buffer.byteLength(PROVENANCE) + Buffer.byteLength(text);
  for (const key of Object.keys(others)) {
    if (key !== PROVENANCE) bytes += Buffer.byteLength(key) + Buffer.byteLength(textOf(others[key]));
  }
  return bytes <= ANNOTATIONS_LIMIT;
}
