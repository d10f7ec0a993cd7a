import { at, isObject, type JsonObject, listAt } from "../../../core/json.ts";
import type { Path } from "../../../core/path.ts";
import { type Problem, problem } from "../../../core/policy/problem.ts";
import type { ProjectLimits } from "./policy.ts";

/** Fields that the plugin of OpenShift 3.11 does not have, and that change its answers. */
const FIELDS = ["serviceAccountsPer", "count", "namespaces", "exempt", "trustedAnnotators"];
const RULE_FIELDS = ["groups", "users"];

/** Identities in a sentence: the spec has them all. */
const MOST_NAMED = 10;

/** With `extensions: Disabled`, a field of an extension is an error: a rule without its `groups` would be for every user. */
export function checkExtensions(spec: JsonObject): Problem[] {
  if (at(spec, "extensions") !== "Disabled") return [];
  const given = (value: unknown, path: Path, fields: readonly string[]): Problem[] =>
    fields
      .filter((field) => isObject(value) && value[field] !== undefined && value[field] !== null)
      .map((field) => problem(["spec", ...path, field], "is an extension, and spec.extensions is Disabled"));
  return [
    ...given(spec, [], FIELDS),
    ...listAt(spec, "limits").flatMap((rule, i) => given(rule, ["limits", i], RULE_FIELDS)),
  ];
}

/** The differences from OpenShift 3.11's plugin, one sentence each. Empty with `extensions: Disabled`. */
export function differences(limits: ProjectLimits): string[] {
  if (!limits.extensions) return [];
  const { exempt, rules } = limits;
  const identities = [
    ...[...exempt.users].map((name) => `user ${name}`),
    ...[...exempt.groups].map((name) => `group ${name}`),
  ];
  const byIdentity = rules.filter(({ groups, users }) => groups !== undefined || users !== undefined).length;
  return [
    ...(identities.length === 0 ? [] : [`exempt, and limited by the plugin: ${named(identities)}`]),
    ...(limits.count === "Exact"
      ? ["concurrent requests are counted exactly; the plugin admits more than the limit"]
      : []),
    "users whose name begins with b64: are ordinary users; to the plugin they are system users",
    ...(byIdentity === 0
      ? []
      : [`rules that match by groups or users, which the plugin does not read: ${byIdentity}`]),
    ...(limits.serviceAccountsPer === "Namespace"
      ? ["service accounts of a namespace are counted together"]
      : []),
    ...(limits.namespaces ? ["the creation of Namespaces is limited, too"] : []),
    "without User objects in the cluster users have no labels; the plugin refuses the request",
  ];
}

function named(identities: readonly string[]): string {
  const more = identities.length - MOST_NAMED;
  return `${identities.slice(0, MOST_NAMED).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}
