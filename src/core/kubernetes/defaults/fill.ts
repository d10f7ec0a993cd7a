import { isObject, type Json, type JsonObject, own } from "../../json.ts";

/**
 * Fills in defaults without changing the input: an object that needs nothing is returned itself, any other is copied
 * one level deep. Spreading and computed keys create own properties, so `__proto__` stays a plain key.
 */

/** Values for members that are absent or null. */
export function fillAbsent(object: JsonObject, defaults: JsonObject): JsonObject {
  return fill(object, defaults, (value) => value === undefined || value === null);
}

/** Values for members that are absent, null, or the zero of their type, which Kubernetes treats as unset. */
export function fillZero(object: JsonObject, defaults: JsonObject): JsonObject {
  return fill(
    object,
    defaults,
    (value) => value === undefined || value === null || value === "" || value === 0,
  );
}

function fill(
  object: JsonObject,
  defaults: JsonObject,
  isUnset: (value: Json | undefined) => boolean,
): JsonObject {
  let filled = object;
  for (const key of Object.keys(defaults)) {
    const value = defaults[key];
    if (value !== undefined && isUnset(own(filled, key))) filled = { ...filled, [key]: value };
  }
  return filled;
}

/** The object with one member replaced, if that member is an object and `change` changes it. */
export function changeMember(
  object: JsonObject,
  key: string,
  change: (member: JsonObject) => JsonObject,
): JsonObject {
  const member = own(object, key);
  if (!isObject(member)) return object;
  const changed = change(member);
  return changed === member ? object : { ...object, [key]: changed };
}

/** The same for each object of a list; other elements stay as they are. */
export function changeItems(
  object: JsonObject,
  key: string,
  change: (item: JsonObject) => JsonObject,
): JsonObject {
  const list = own(object, key);
  if (!Array.isArray(list)) return object;
  let changed = false;
  const items = list.map((item: Json) => {
    if (!isObject(item)) return item;
    const next = change(item);
    if (next !== item) changed = true;
    return next;
  });
  return changed ? { ...object, [key]: items } : object;
}
