import { type JsonObject, listAt, stringAt } from "../../../core/json.ts";

/**
 * Whether an update of a pod is judged: containers or init containers came or went, an image changed, or an ephemeral container was
 * added. Ephemeral containers are compared by name, for a strategic merge patch puts new ones first.
 */
export function isSignificantUpdate(spec: JsonObject | undefined, old: JsonObject | undefined): boolean {
  for (const list of ["containers", "initContainers"]) {
    const now = listAt(spec, list);
    const before = listAt(old, list);
    if (now.length !== before.length) return true;
    if (now.some((container, i) => stringAt(container, "image") !== stringAt(before[i], "image")))
      return true;
  }
  const images = new Map(
    listAt(old, "ephemeralContainers").map((one) => [stringAt(one, "name"), stringAt(one, "image")]),
  );
  return listAt(spec, "ephemeralContainers").some((one) => {
    const name = stringAt(one, "name");
    return !images.has(name) || images.get(name) !== stringAt(one, "image");
  });
}
