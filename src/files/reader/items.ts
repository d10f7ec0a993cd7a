import { isObject, type Json, type JsonObject, stringAt } from "../../core/json.ts";
import type { Path } from "../../core/path.ts";

/** One object of a document: the document itself, or an item of a list that the document is. */
export interface Item {
  readonly path: Path;
  readonly value: Json;
}

/**
 * A `kind: List` is its items, also within each other, as kubectl flattens them. Lists of one kind (`NodeList`, as the API
 * itself gives them) leave out what their items are; it is filled in.
 */
export function itemsOf(value: Json, path: Path = []): Item[] {
  const kind = stringAt(value, "kind");
  const items = isObject(value) && Object.hasOwn(value, "items") ? value["items"] : undefined;
  if (kind === undefined || !kind.endsWith("List") || !Array.isArray(items)) return [{ path, value }];
  const apiVersion = stringAt(value, "apiVersion");
  const itemKind = kind.slice(0, -"List".length);
  return items.flatMap((item: Json, i) => {
    const known = isObject(item) && itemKind !== "" && apiVersion !== undefined;
    return itemsOf(known ? withKind(item, apiVersion, itemKind) : item, [...path, "items", i]);
  });
}

function withKind(item: JsonObject, apiVersion: string, kind: string): JsonObject {
  return Object.hasOwn(item, "kind") ? item : { apiVersion, kind, ...item };
}
