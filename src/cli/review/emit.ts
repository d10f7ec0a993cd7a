import { Draft, type Edit } from "../../core/evaluate/draft.ts";
import type { JsonObject } from "../../core/json.ts";
import { yamlDocuments } from "../output/yaml.ts";

/**
 * The manifest with usher's changes and nothing else: the edits are repeated on what the user wrote, so the defaults that they
 * were judged with stay out.
 */
export function emitted(object: JsonObject, edits: readonly Edit[]): JsonObject {
  const draft = new Draft(structuredClone(object) as JsonObject);
  for (const { kind, path, value } of edits) {
    if (kind === "remove") draft.remove(path, undefined);
    // A list that only the defaults had made is made here by the first element of ours.
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
