import { isObject, type JsonObject } from "../../../core/json.ts";

/** A stored object as a manifest that can be applied: without what the API server sets. */
export function withoutServerFields(object: JsonObject): JsonObject {
  const { status: _status, metadata, ...rest } = object;
  if (!isObject(metadata)) return object;
  const {
    managedFields: _fields,
    resourceVersion: _version,
    uid: _uid,
    generation: _generation,
    creationTimestamp: _created,
    selfLink: _link,
    ...kept
  } = metadata;
  const { apiVersion, kind, ...below } = rest;
  return { apiVersion, kind, metadata: kept, ...below };
}
