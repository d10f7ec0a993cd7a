import { isObject, type JsonObject } from "../../core/json.ts";

/** The owner of the objects that usher writes at run time: they are deleted with it. */
export interface Ownership {
  /** The ownerReference. */
  readonly owner: JsonObject;
  /** Whether objects that do not exist may be created. */
  readonly creates: boolean;
}

/** With the owner goes all that could answer or repair, so the garbage collector removes these objects with it. */
export function ownedBy({ owner }: Ownership, objects: readonly JsonObject[]): readonly JsonObject[] {
  return objects.map((object) => {
    const metadata = isObject(object["metadata"]) ? object["metadata"] : {};
    return { ...object, metadata: { ...metadata, ownerReferences: [owner] } };
  });
}
