import type { Json, JsonObject } from "../../../../core/json.ts";
import { celValue } from "../../../../core/kubernetes/cel.ts";
import type { Path } from "../../../../core/path.ts";
import { joinQuote, plural, sortedSet } from "../../go-text.ts";
import { inContexts } from "../cel.ts";
import type { Check, Failure, Variant } from "../check.ts";
import { type CheckedPod, isSet, objectOf, shown } from "../checked-pod.ts";
import { causesAt, contextPaths, removeFields, setters } from "../containers.ts";

const TYPES = ["container_t", "container_init_t", "container_kvm_t"];

/**
 * SELinux types are limited; users and roles may not be set.
 *
 * Fields:  spec.securityContext.seLinuxOptions.{type,user,role},
 *          spec.{containers,initContainers,ephemeralContainers}[*].securityContext.seLinuxOptions.{type,user,role}
 * Allowed: type: absent, empty, container_t, container_init_t, container_kvm_t; from v1.31 container_engine_t.
 *          user, role: absent, empty
 * Fix:     removes what is forbidden.
 */
export const seLinuxOptions: Check = {
  id: "seLinuxOptions",
  level: "baseline",
  os: "linux",
  fix: removeFields,
  variants: [
    variant(0, TYPES, ["container_engine_t"]),
    variant(31, [...TYPES, "container_engine_t"], ["spc_t"]),
  ],
};

function variant(since: number, types: readonly string[], forbiddenTypes: readonly string[]): Variant {
  const allowed: ReadonlySet<unknown> = new Set([undefined, null, "", ...types]);
  return {
    since,
    fields: (["pod", "container"] as const).map((scope) => ({
      scope,
      path: ["securityContext", "seLinuxOptions"],
      allowed: [null, {}, { level: "s0:c1,c2" }, ...types.map((type) => ({ type }))],
      forbidden: [...forbiddenTypes.map((type) => ({ type })), { user: "u" }, { role: "r" }],
    })),
    cel: inContexts((context) => {
      const options = `${context}.?seLinuxOptions`;
      return `${options}.?type.orValue("") in ${celValue(["", ...types])} && ${options}.?user.orValue("") == "" && ${options}.?role.orValue("") == ""`;
    }),
    evaluate: (pod, mostCauses) => evaluateSELinuxOptions(pod, allowed, mostCauses),
  };
}

function breaks(options: Json | undefined, allowed: ReadonlySet<unknown>): boolean {
  if (!isSet(options)) return false;
  const { type, user, role } = objectOf(options);
  return !allowed.has(type) || isGiven(user) || isGiven(role);
}

const GIVEN = "must be empty or absent";
const isGiven = (value: Json | undefined): boolean => isSet(value) && value !== "";

function evaluateSELinuxOptions(
  pod: CheckedPod,
  allowed: ReadonlySet<unknown>,
  mostCauses: number,
): Failure | undefined {
  const { context, contexts } = pod;
  const podBreaks = breaks(context["seLinuxOptions"], allowed);
  let containers: number[] | undefined;
  for (let i = 0; i < contexts.length; i++) {
    if (!breaks(contexts[i]?.["seLinuxOptions"], allowed)) continue;
    if (containers === undefined) containers = [i];
    else containers.push(i);
  }
  if (!podBreaks && containers === undefined) return undefined;
  const owners: (JsonObject | undefined)[] = [
    ...(podBreaks ? [context] : []),
    ...(containers ?? []).map((i) => contexts[i]),
  ];
  const options = owners.map((owner) => objectOf(owner?.["seLinuxOptions"]));
  const types = options.values().filter(({ type }) => !allowed.has(type));
  const bad = sortedSet(types.map(({ type }) => shown(type)));
  const parts = [
    ...(bad.length > 0 ? [`${plural("type", "types", bad.length)} ${joinQuote(bad)}`] : []),
    ...(options.some(({ user }) => isGiven(user)) ? ["user may not be set"] : []),
    ...(options.some(({ role }) => isGiven(role)) ? ["role may not be set"] : []),
  ];
  const typeMessage = `must be absent or one of ${[...allowed].filter((type) => isSet(type as Json) && type !== "").join(", ")}`;
  const paths = contextPaths(pod, podBreaks, containers, mostCauses, "seLinuxOptions");
  const where = (field: string, isWrong: (one: JsonObject) => boolean): Path[] =>
    paths.flatMap((path, i) => (isWrong(options[i] ?? {}) ? [[...path, field]] : []));
  return {
    reason: "seLinuxOptions",
    detail: `${setters(pod, podBreaks, containers)} set forbidden securityContext.seLinuxOptions: ${parts.join("; ")}`,
    causes: [
      ...causesAt(
        where("type", ({ type }) => !allowed.has(type)),
        typeMessage,
      ),
      ...causesAt(
        where("user", ({ user }) => isGiven(user)),
        GIVEN,
      ),
      ...causesAt(
        where("role", ({ role }) => isGiven(role)),
        GIVEN,
      ),
    ],
  };
}
