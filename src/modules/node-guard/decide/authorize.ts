import { type Facts, failureOf, type Need } from "../../../core/evaluate/need.ts";
import type { AdmissionRequest, UserInfo } from "../../../core/evaluate/request.ts";
import { at, type JsonObject } from "../../../core/json.ts";
import type { Group } from "../groups/group.ts";
import { actorMatches, podMatches } from "../principals/principal.ts";

/** By which entry a side is authorised; `undefined`: it is not. */
export type Authorized = { readonly by: string | undefined } | { readonly need: readonly Need[] };

/** The API group of access reviews, which exists in roles only. */
export const ACCESS_GROUP = "scheduling.usher.dev";
export const ACCESS_RESOURCE = "nodegroups";

/** Whether the sender of a request may assign pods to nodes of the group. */
export function authorizeActor(group: Group, { userInfo }: AdmissionRequest, facts: Facts): Authorized {
  const entry = actorMatches(userInfo, group);
  if (entry !== undefined) return { by: entry.entry };
  return group.rbac ? review(userInfo, "assign", group, facts) : { by: undefined };
}

/** Whether a pod may run on nodes of the group. */
export function authorizePod(
  group: Group,
  namespace: string,
  account: string | undefined,
  facts: Facts,
): Authorized {
  const entry = podMatches(namespace, account, group);
  if (entry !== undefined) return { by: entry.entry };
  if (!group.rbac || account === undefined) return { by: undefined };
  const user: UserInfo = {
    username: `system:serviceaccount:${namespace}:${account}`,
    groups: ["system:serviceaccounts", `system:serviceaccounts:${namespace}`, "system:authenticated"],
  };
  return review(user, "run-on", group, facts);
}

/** What can't be reviewed is not authorised. */
function review(
  { username, uid, groups, extra }: UserInfo,
  verb: string,
  { name }: Group,
  facts: Facts,
): Authorized {
  const spec: JsonObject = {
    user: username,
    groups: [...groups],
    ...(uid === undefined ? {} : { uid }),
    ...(extra === undefined ? {} : { extra }),
    resourceAttributes: { verb, group: ACCESS_GROUP, resource: ACCESS_RESOURCE, name },
  };
  const need: Need = { access: spec };
  const fact = facts.of(need);
  if (fact === undefined) return { need: [need] };
  const allowed = failureOf(fact) === undefined && "found" in fact && isAllowed(fact.found as JsonObject);
  return { by: allowed ? `rbac ${verb} ${ACCESS_RESOURCE}.${ACCESS_GROUP} ${name}` : undefined };
}

function isAllowed(found: JsonObject): boolean {
  return at(found, "allowed") === true || at(found, "status", "allowed") === true;
}
