import type { PatchOperation } from "../../../core/decision/patch.ts";
import { isObject, type Json, type JsonObject, setOwn } from "../../../core/json.ts";
import { type Path, pointer } from "../../../core/path.ts";
import type { FixEdit } from "./check.ts";

/**
 * Builds JSON Patches from the edits of all violations of a pod. Each patch applies alone, and they apply in sequence:
 * if the edits of several meet in an object that the pod does not have, each adds that object with everything needed
 * there.
 */
export class FixWriter {
  readonly #pod: JsonObject;
  /** Objects that the pod does not have, by their pointer. */
  readonly #added = new Map<string, Record<string, Json | undefined>>();

  constructor(pod: JsonObject) {
    this.#pod = pod;
  }

  /** The operations of one violation; `undefined` if no patch applies to the pod's shape. */
  operations(edits: readonly FixEdit[]): PatchOperation[] | undefined {
    const operations = new Map<string, PatchOperation>();
    for (const edit of edits) {
      const operation = this.#operation(edit);
      if (operation === undefined) return undefined;
      operations.set(operation.path, operation);
    }
    return [...operations.values()];
  }

  #operation({ path, value }: FixEdit): PatchOperation | undefined {
    let here: Json | undefined = this.#pod;
    for (let depth = 0; depth < path.length; depth++) {
      const step = path[depth] ?? "";
      const last = depth === path.length - 1;
      if (!isObject(here) && !Array.isArray(here)) return undefined;
      const next: Json | undefined = step === "-" ? undefined : (here as JsonObject)[String(step)];
      if (last) {
        const text = pointer(path);
        if (value === undefined) return { op: "remove", path: text };
        return { op: next === undefined ? "add" : "replace", path: text, value };
      }
      if (next === undefined || next === null) {
        // Nothing to remove if absent.
        if (value === undefined || Array.isArray(here)) return undefined;
        return this.#add(path.slice(0, depth + 1), path.slice(depth + 1), value);
      }
      here = next;
    }
    return undefined;
  }

  #add(at: Path, below: Path, value: Json): PatchOperation {
    const text = pointer(at);
    let object = this.#added.get(text);
    if (object === undefined) {
      object = {};
      this.#added.set(text, object);
    }
    let here = object;
    for (const step of below.slice(0, -1)) {
      const next: Record<string, Json | undefined> = isObject(here[step]) ? { ...here[step] } : {};
      setOwn(here, String(step), next);
      here = next;
    }
    setOwn(here, String(below.at(-1) ?? ""), value);
    return { op: "add", path: text, value: object };
  }
}
