import type { Json, JsonObject } from "../../../../core/json.ts";
import { forbiddenAdds } from "../capability-adds.ts";
import type { Check, Failure, FixEdit, RestrictedField } from "../check.ts";
import { causesAt, containerNames, containersWhere, contextPaths, listOf } from "../containers.ts";
import { containerPath, type JudgedPod, objectOf } from "../judged-pod.ts";

const FIELDS: readonly RestrictedField[] = [
  {
    scope: "container",
    path: ["securityContext", "capabilities"],
    allowed: [{ drop: ["ALL"] }, { drop: ["KILL", "ALL"], add: ["NET_BIND_SERVICE"] }],
    forbidden: [
      null,
      {},
      { drop: ["all"] },
      { add: ["CHOWN"] },
      { drop: ["ALL"], add: ["CHOWN", "NET_RAW"] },
    ],
  },
];

/**
 * Containers must drop all capabilities, and may add one.
 *
 * Fields:  spec.{containers,initContainers,ephemeralContainers}[*].securityContext.capabilities.{drop,add}
 * Allowed: drop: a list with ALL. add: absent, empty, NET_BIND_SERVICE.
 *          From v1.25 anything in a pod with `os.name: windows`
 * Fix:     adds ALL to drop, and removes what may not be added.
 */
export const capabilitiesRestricted: Check = {
  id: "capabilities_restricted",
  level: "restricted",
  overrides: ["capabilities_baseline"],
  os: "linux",
  variants: [
    { since: 22, fields: FIELDS, evaluate: forbidden },
    { since: 25, skips: "windows", fields: FIELDS, evaluate: forbidden },
  ],
};

const isForbidden = (name: Json): boolean => name !== "NET_BIND_SERVICE";
const addsForbidden = (context: JsonObject): boolean => forbiddenAdds.any(context, isForbidden);
const keepsSome = (context: JsonObject): boolean =>
  !listOf(objectOf(context["capabilities"])["drop"]).includes("ALL");

function forbidden(pod: JudgedPod): Failure | undefined {
  const keeping = containersWhere(pod, keepsSome);
  const adding = containersWhere(pod, addsForbidden);
  if (keeping === undefined && adding === undefined) return undefined;
  const details: string[] = [];
  if (keeping !== undefined)
    details.push(`${containerNames(pod, keeping)} must set securityContext.capabilities.drop=["ALL"]`);
  if (adding !== undefined)
    details.push(
      `${containerNames(pod, adding)} must not include ${forbiddenAdds.names(pod, adding, isForbidden)} in securityContext.capabilities.add`,
    );
  return {
    reason: "unrestricted capabilities",
    detail: details.join("; "),
    places: (most) => {
      const paths = forbiddenAdds.paths(pod, adding ?? [], isForbidden, most);
      return {
        causes: [
          ...causesAt(contextPaths(pod, false, keeping, most, "capabilities", "drop"), "must include ALL"),
          ...causesAt(paths, "must be NET_BIND_SERVICE"),
        ],
        edits: [
          ...(keeping ?? []).slice(0, most).map((i) => dropAll(pod, i)),
          ...paths.toReversed().map((path) => ({ path })),
        ],
      };
    },
  };
}

function dropAll(pod: JudgedPod, container: number): FixEdit {
  const path = containerPath(pod, container, "securityContext", "capabilities", "drop");
  const drop = objectOf(pod.contexts[container]?.["capabilities"])["drop"];
  return Array.isArray(drop) ? { path: [...path, "-"], value: "ALL" } : { path, value: ["ALL"] };
}
