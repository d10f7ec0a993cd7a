import { at, type Json, type JsonObject } from "../../../../core/json.ts";
import { forbiddenAdds } from "../capability-adds.ts";
import { CONTEXT } from "../cel.ts";
import type { Check, CheckInCel, Failure, FieldViolation, FixEdit, RestrictedField } from "../check.ts";
import { type CheckedPod, objectOf } from "../checked-pod.ts";
import {
  causesAt,
  containerNames,
  containersWhere,
  contextPaths,
  listOf,
  removeElements,
} from "../containers.ts";

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

const IN_CEL: CheckInCel = {
  container: `"ALL" in ${CONTEXT}.?capabilities.?drop.orValue([]) && ${CONTEXT}.?capabilities.?add.orValue([]).all(a, a == "NET_BIND_SERVICE")`,
};

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
  fix: restrictCapabilities,
  variants: [
    { since: 22, fields: FIELDS, cel: IN_CEL, evaluate: evaluateCapabilities },
    { since: 25, skips: "windows", fields: FIELDS, cel: IN_CEL, evaluate: evaluateCapabilities },
  ],
};

const isForbidden = (name: Json): boolean => name !== "NET_BIND_SERVICE";
const addsForbidden = (context: JsonObject): boolean => forbiddenAdds.any(context, isForbidden);
const keepsSome = (context: JsonObject): boolean =>
  !listOf(objectOf(context["capabilities"])["drop"]).includes("ALL");

function evaluateCapabilities(pod: CheckedPod, mostCauses: number): Failure | undefined {
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
    causes: [
      ...causesAt(contextPaths(pod, false, keeping, mostCauses, "capabilities", "drop"), "must include ALL"),
      ...causesAt(
        forbiddenAdds.paths(pod, adding ?? [], isForbidden, mostCauses),
        "must be NET_BIND_SERVICE",
      ),
    ],
  };
}

function restrictCapabilities(
  causes: readonly FieldViolation[],
  { metadata, spec }: CheckedPod,
): readonly FixEdit[] {
  const [drops, adds] = [causes.filter(isDrop), causes.filter((cause) => !isDrop(cause))];
  const edits = drops.map(({ path }) =>
    Array.isArray(at({ metadata, spec }, ...path))
      ? { path: [...path, "-"], value: "ALL" }
      : { path, value: ["ALL"] },
  );
  return [...edits, ...removeElements(adds)];
}

const isDrop = ({ path }: FieldViolation): boolean => path.at(-1) === "drop";
