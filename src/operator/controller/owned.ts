import type { Assembly } from "../../core/evaluate/assembly.ts";
import { isObject, type JsonObject, stringAt } from "../../core/json.ts";

/** With usher's namespace goes all that could answer or repair, so the garbage collector removes these objects with it. */
export function ownedByNamespace(
  objects: readonly JsonObject[],
  { view, installation }: Pick<Assembly, "view" | "installation">,
): readonly JsonObject[] {
  const name = installation.namespace;
  const uid = stringAt(view.get("namespaces", "", name), "metadata", "uid");
  if (uid === undefined) return objects;
  return objects.map((object) => {
    const metadata = isObject(object["metadata"]) ? object["metadata"] : {};
    const owner = { apiVersion: "v1", kind: "Namespace", name, uid };
    return { ...object, metadata: { ...metadata, ownerReferences: [owner] } };
  });
}
