import { Draft, type Edit } from "../../core/decision/draft.ts";
import type { JsonObject } from "../../core/json.ts";
import { yamlDocuments } from "../output/yaml.ts";

/** The manifest with usher's changes only: edits are replayed on the original, without the defaults that it was evaluated with. */
export function emitted(object: JsonObject, edits: readonly Edit[]): JsonObject {
  const draft = new Draft(structuredClone(object) as JsonObject);
  for (const { kind, path, value } of edits) {
    if (kind === "remove") draft.remove(path, undefined);
    // A list that only defaulting created is created by its first element.
    else if (kind === "append") draft.append(path.slice(0, -1), value ?? null, undefined);
    else draft.set(path, value ?? null, undefined);
  }
  return draft.object;
}

export function emitText(objects: readonly JsonObject[], format: "yaml" | "json"): string {
  if (format === "yaml") return yamlDocuments(objects);
  const list = { apiVersion: "v1", kind: "List", items: objects };
  return JSON.stringify(objects.length === 1 ? objects[0] : list, null, 2);
}
