import type { UserInfo } from "../../core/decision/request.ts";
import type { JsonObject } from "../../core/json.ts";

/** Verbs of requests to a collection, as the API server derives them; for an object GET is get and DELETE is delete. */
const VERBS: Readonly<Record<string, string>> = {
  GET: "list",
  HEAD: "list",
  POST: "create",
  PUT: "update",
  PATCH: "patch",
  DELETE: "deletecollection",
};
const OBJECT_VERBS: Readonly<Record<string, string>> = {
  ...VERBS,
  GET: "get",
  HEAD: "get",
  DELETE: "delete",
};

/** The spec of the SubjectAccessReview for a request, with the attributes by which an API server itself would authorize it. */
export function accessOf(
  { username, groups, uid, extra }: UserInfo,
  method: string,
  path: string,
): JsonObject {
  return {
    user: username,
    groups,
    ...(uid === undefined ? {} : { uid }),
    ...(extra === undefined ? {} : { extra }),
    ...attributesOf(method, path),
  };
}

function attributesOf(method: string, path: string): JsonObject {
  const [, root, group = "", version = "", resource = "", name = "", subresource = ""] = path.split("/");
  if (root !== "apis" || resource === "")
    return { nonResourceAttributes: { path, verb: method.toLowerCase() } };
  const verb = (name === "" ? VERBS : OBJECT_VERBS)[method] ?? method.toLowerCase();
  return { resourceAttributes: { group, version, resource, verb, name, subresource } };
}
