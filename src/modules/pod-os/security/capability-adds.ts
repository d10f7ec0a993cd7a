import type { Json, JsonObject } from "../../../core/json.ts";
import type { Path } from "../../../core/path.ts";
import { joinQuote, sortedSet } from "../go-text.ts";
import { type CheckedPod, containerPath, objectOf, shown } from "./checked-pod.ts";
import { listOf } from "./containers.ts";

/** Capabilities that containers add against a rule. */
export const forbiddenAdds = {
  any(context: JsonObject, isForbidden: (name: Json) => boolean): boolean {
    const names = addedBy(context);
    for (let i = 0; i < names.length; i++) if (isForbidden(names[i] ?? null)) return true;
    return false;
  },

  /** The adds of these containers, as a message lists them. */
  names(pod: CheckedPod, containers: readonly number[], isForbidden: (name: Json) => boolean): string {
    const names: string[] = [];
    for (const container of containers)
      for (const name of addedBy(pod.contexts[container])) if (isForbidden(name)) names.push(shown(name));
    return joinQuote(sortedSet(names));
  },

  /** The paths of the first of them. */
  paths(
    pod: CheckedPod,
    containers: readonly number[],
    isForbidden: (name: Json) => boolean,
    most: number,
  ): Path[] {
    const paths: Path[] = [];
    for (const container of containers) {
      const names = addedBy(pod.contexts[container]);
      for (let i = 0; i < names.length; i++) {
        if (paths.length >= most) return paths;
        if (isForbidden(names[i] ?? null))
          paths.push(containerPath(pod, container, "securityContext", "capabilities", "add", i));
      }
    }
    return paths;
  },
};

function addedBy(context: JsonObject | undefined): readonly Json[] {
  return listOf(objectOf(context?.["capabilities"])["add"]);
}
