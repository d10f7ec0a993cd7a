import type { UserInfo } from "../evaluate/request.ts";

const SERVICE_ACCOUNT = /^system:serviceaccount:([^:]+):[^:]+$/;

/** The user of a request, with the groups that the API server adds on impersonation. */
export function userInfoFor(username: string, groups: readonly string[]): UserInfo {
  const [, namespace] = SERVICE_ACCOUNT.exec(username) ?? [];
  const own =
    groups.length === 0 && namespace !== undefined
      ? ["system:serviceaccounts", `system:serviceaccounts:${namespace}`]
      : groups;
  const known = username === "system:anonymous" ? "system:unauthenticated" : "system:authenticated";
  const complete = own.includes("system:authenticated") || own.includes("system:unauthenticated");
  return { username, groups: complete ? [...own] : [...own, known] };
}
