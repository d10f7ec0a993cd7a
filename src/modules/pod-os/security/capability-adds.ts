import type { Json, JsonObject } from "../../../core/json.ts";
import type { Path } from "../../../core/path.ts";
import { listOf } from "./containers.ts";
import { containerPath, type JudgedPod, objectOf } from "./judged-pod.ts";

/** Capabilities that containers add against a rule. */
export const forbiddenAdds = {
  any(context: JsonObject, isForbidden: (name: Json) => boolean): boolean {
    const names = addedBy(context);
    for (let i = 0; i < names.length; i++) if (isForbidden(names[i] ?? null)) return true;
    return false;
  },

  /** Of these containers: the names, and where each is. */
  all(
    pod: JudgedPod,
    containers: readonly number[],
    isForbidden: (name: Json) => boolean,
  ): { names: Json[]; paths: Path[] } {
    const names: Json[] = [];
    const paths: Path[] = [];
    for (const container of containers) {
      for (const [i, name] of addedBy(pod.contexts[container]).entries()) {
        if (!isForbidden(name)) continue;
        names.push(name);
        paths.push(containerPath(pod, container, "securityContext", "capabilities", "add", i));
      }
    }
    return { names, paths };
  },
};

function addedBy(context: JsonObject | undefined): readonly Json[] {
  return listOf(objectOf(context?.["capabilities"])["add"]);
}
