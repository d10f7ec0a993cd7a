import type { Json, JsonObject } from "../../../../core/json.ts";
import type { Path } from "../../../../core/path.ts";
import { joinQuote, plural, sortedSet } from "../../go-text.ts";
import type { Check, Failure, Variant } from "../check.ts";
import { contextPaths, setters } from "../containers.ts";
import { isSet, type JudgedPod, objectOf, shown } from "../judged-pod.ts";

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
    evaluate: (pod) => forbidden(pod, allowed),
  };
}

function breaks(options: Json | undefined, allowed: ReadonlySet<unknown>): boolean {
  if (!isSet(options)) return false;
  const { type, user, role } = objectOf(options);
  return !allowed.has(type) || isGiven(user) || isGiven(role);
}

const isGiven = (value: Json | undefined): boolean => isSet(value) && value !== "";

function forbidden(pod: JudgedPod, allowed: ReadonlySet<unknown>): Failure | undefined {
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
  const at = contextPaths(pod, podBreaks, containers, "seLinuxOptions");
  const found = { type: [] as Path[], user: [] as Path[], role: [] as Path[] };
  const types: string[] = [];
  for (const [i, owner] of owners.entries()) {
    const { type, user, role } = objectOf(owner?.["seLinuxOptions"]);
    const path = at[i] ?? [];
    if (!allowed.has(type)) {
      types.push(shown(type));
      found.type.push([...path, "type"]);
    }
    if (isGiven(user)) found.user.push([...path, "user"]);
    if (isGiven(role)) found.role.push([...path, "role"]);
  }
  const bad = sortedSet(types);
  const parts = [
    ...(bad.length > 0 ? [`${plural("type", "types", bad.length)} ${joinQuote(bad)}`] : []),
    ...(found.user.length > 0 ? ["user may not be set"] : []),
    ...(found.role.length > 0 ? ["role may not be set"] : []),
  ];
  const typeMessage = `must be absent or one of ${[...allowed].filter((type) => isSet(type as Json) && type !== "").join(", ")}`;
  return {
    reason: "seLinuxOptions",
    detail: `${setters(pod, podBreaks, containers)} set forbidden securityContext.seLinuxOptions: ${parts.join("; ")}`,
    places: () => ({
      causes: [
        ...found.type.map((path) => ({ path, message: typeMessage })),
        ...[...found.user, ...found.role].map((path) => ({ path, message: "must be empty or absent" })),
      ],
      edits: [...found.type, ...found.user, ...found.role].map((path) => ({ path })),
    }),
  };
}
