import type { ObjectReference } from "../../../core/evaluate/finding.ts";
import type { AdmissionRequest } from "../../../core/evaluate/request.ts";
import { stringAt } from "../../../core/json.ts";
import { controllerOf } from "../../../core/kubernetes/object.ts";
import type { View } from "../../../core/view/view.ts";

/** What the event of a refusal is about: the controlling owner, else the namespace, and then the event is in it, where its users look. The refused object will not exist. */
export function ownerOf({ object, namespace }: AdmissionRequest, view: View): ObjectReference {
  const owner = object === undefined ? undefined : controllerOf(object);
  if (owner !== undefined) return { ...owner, namespace };
  const uid = stringAt(view.get("namespaces", "", namespace), "metadata", "uid");
  return {
    apiVersion: "v1",
    kind: "Namespace",
    name: namespace,
    namespace,
    ...(uid === undefined ? {} : { uid }),
  };
}
