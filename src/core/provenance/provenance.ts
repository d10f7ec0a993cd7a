import type { Draft } from "../evaluate/draft.ts";
import { ElementList } from "../evaluate/element-list.ts";
import type { ModuleFinding } from "../evaluate/finding.ts";
import { at, canonical, equal, isObject, type JsonObject, stringAt } from "../json.ts";
import { controllerOf, isBeingDeleted } from "../kubernetes/object.ts";
import { type Path, pointer } from "../path.ts";
import { bareNote, noteFrom, type Origin, PROVENANCE, provenanceOf } from "./origin.ts";
import { Kept, OriginIndex } from "./origin-index.ts";

/**
 * An object whose annotations exceed 262,144 bytes together is refused by the API server, even where our hook is open
 * (TotalAnnotationSizeLimitB). Above this the explanation is left out rather than the object.
 */
export const ANNOTATIONS_LIMIT = 262_144;

/**
 * Writes the annotation from the edits. On UPDATE what the stored object says of itself is kept as long as it is still true;
 * what the client sends is believed only where a policy says the same of itself in this very evaluation, because anyone can
 * write an annotation. True where the draft carries its provenance now, or needs none.
 */
export function writeProvenance(
  draft: Draft,
  findings: readonly ModuleFinding[],
  old: JsonObject | undefined,
): boolean {
  const stored = provenanceOf(old);
  const claimed = provenanceOf(draft.object);
  if (draft.edits.length === 0) {
    if (stored.length === 0 && claimed.length === 0) return true;
    // A controller copies its owner's annotations (a Deployment's onto its ReplicaSets) and would write again and again
    // what we took out or corrected.
    if (controllerOf(draft.object) !== undefined) return true;
    // Nobody reads the note of what is going, and its finalizers must come off undisturbed.
    if (isBeingDeleted(draft.object)) return true;
  }
  const book = new OriginIndex();
  if (stored.length > 0 || claimed.length > 0) {
    const kept = new Kept(draft.object, old);
    const { disowned } = draft;
    for (const origin of stored) book.keep(ownedStill(origin, disowned), kept);
    book.keepConfirmed(
      claimed.map((origin) => ownedStill(origin, disowned)),
      findings,
    );
  }
  // Each list is spelled out once, however many have added to it: by now nobody changes it any more.
  const lists = new Map<string, ElementList>();
  const listAt = (path: Path): ElementList => {
    const place = pointer(path);
    const list = lists.get(place) ?? new ElementList(draft.get(...path));
    lists.set(place, list);
    return list;
  };
  for (const edit of draft.edits) {
    if (edit.finding?.policy === undefined || edit.kind === "remove") continue;
    // A later module may have taken it out again.
    if (draft.get(...edit.path) === undefined) continue;
    if (edit.kind === "append") {
      const list = edit.path.slice(0, -1);
      const value = edit.value ?? null;
      // Where the list was written whole since, another may stand in its place.
      if (equal(draft.get(...edit.path), value) || listAt(list).carries(canonical(value)))
        book.add(edit.finding, list, value);
    } else if (edit.adds === undefined) book.set(edit.finding, edit.path);
    else {
      // One that comes later may have left an element out again.
      const now = listAt(edit.path);
      if (edit.adds.all) book.forget(edit.finding, edit.path);
      for (const element of edit.adds.elements)
        if (now.carries(canonical(element))) book.add(edit.finding, edit.path, element);
    }
  }
  const modules = book.modules();
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
  if (annotationBytes(draft.object) + PROVENANCE.length + Buffer.byteLength(text) > ANNOTATIONS_LIMIT) {
    // Where the truth has no room, what the client wrote in its place must not pass for it.
    draft.remove(path, undefined);
    return false;
  }
  return draft.set(path, text, undefined);
}

/** What is left of an origin without what was taken out. */
function ownedStill(origin: Origin, disowned: readonly Origin[]): Origin {
  let left = origin;
  for (const { module, policy, set, added } of disowned) {
    if (module !== origin.module || policy !== origin.policy) continue;
    const places = new Set(set);
    const lists = Object.entries(left.added).map(([list, elements]) => {
      const gone = new Set(added[list]?.map(canonical));
      return [list, elements.filter((element) => !gone.has(canonical(element)))] as const;
    });
    left = {
      ...left,
      set: left.set.filter((place) => !places.has(place)),
      added: Object.fromEntries(lists),
    };
  }
  return left;
}

function annotationBytes(object: JsonObject): number {
  const annotations = at(object, "metadata", "annotations");
  if (!isObject(annotations)) return 0;
  let bytes = 0;
  for (const key of Object.keys(annotations)) {
    if (key !== PROVENANCE) bytes += Buffer.byteLength(key) + Buffer.byteLength(String(annotations[key]));
  }
  return bytes;
}
