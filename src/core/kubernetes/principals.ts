import { type Json, type JsonObject, listAt, stringAt } from "../json.ts";
import { quoted } from "./field-error.ts";
import { checkDnsLabel, checkSubdomain } from "./names.ts";

export interface ServiceAccountPrincipal {
  readonly kind: "serviceAccount";
  readonly namespace: string;
  readonly name: string;
  /** `namespace` is then a prefix: it was written with a trailing `*`. */
  readonly namespacePrefix?: boolean;
}

export interface UserPrincipal {
  readonly kind: "user";
  readonly name: string;
}

export type Principal = ServiceAccountPrincipal | UserPrincipal;

/** The sender of a request, as authenticated by the API server. */
export interface Sender {
  readonly username?: string | undefined;
  readonly groups?: readonly string[] | undefined;
}

/** The beginning of every service account's user name. */
export const SERVICE_ACCOUNT = "system:serviceaccount:";
/** The group of the service accounts of a namespace, without the namespace. */
export const SERVICE_ACCOUNTS_OF = "system:serviceaccounts:";
const NODE = "system:node:";
const NODES = "system:nodes";

const CONTROL_CHARACTER = /\p{Cc}/u;
/** Allowed before the `*`: the beginning of a DNS label, never empty, otherwise it would match every namespace. */
const NAMESPACE_PREFIX = /^[a-z0-9][-a-z0-9]{0,61}$/;

/**
 * An entry of a list of principals: `ns/sa` or `system:serviceaccount:ns:sa` is a service account, anything else a
 * user's name. Nothing is trimmed or folded. A string that looks like a service account but is invalid is refused
 * rather than treated as a user, and so is a user's name with a slash: such names need an explicit form.
 */
export function parsePrincipal(text: string): Principal | { readonly problem: string } {
  if (text === "") return { problem: "a principal must not be empty" };
  if (CONTROL_CHARACTER.test(text)) return { problem: `${quoted(text)} contains a control character` };
  if (text.trim() !== text) return { problem: `${quoted(text)} begins or ends with a space` };
  if (text.startsWith(SERVICE_ACCOUNT)) {
    const parts = text.slice(SERVICE_ACCOUNT.length).split(":");
    return serviceAccount(parts, text, `write ${SERVICE_ACCOUNT}<namespace>:<name>`);
  }
  if (text.includes("/")) {
    const form = "write <namespace>/<name>; a user's name with a slash needs the form {user: …}";
    return serviceAccount(text.split("/"), text, form);
  }
  return { kind: "user", name: text };
}

function serviceAccount(
  parts: readonly string[],
  text: string,
  form: string,
): ServiceAccountPrincipal | { readonly problem: string } {
  const [namespace, name] = parts;
  if (parts.length !== 2 || namespace === undefined || name === undefined) {
    return { problem: `${quoted(text)} is not a service account: ${form}` };
  }
  const wrongName = checkSubdomain(name);
  if (wrongName !== undefined)
    return { problem: `${quoted(text)} is not a service account: ${wrongName}; ${form}` };
  if (namespace.endsWith("*")) {
    const prefix = namespace.slice(0, -1);
    if (NAMESPACE_PREFIX.test(prefix))
      return { kind: "serviceAccount", namespace: prefix, name, namespacePrefix: true };
    return { problem: `${quoted(text)}: before "*" must be the beginning of a namespace's name` };
  }
  const wrong = checkDnsLabel(namespace);
  if (wrong !== undefined) return { problem: `${quoted(text)} is not a service account: ${wrong}; ${form}` };
  return { kind: "serviceAccount", namespace, name };
}

export function serviceAccountUser(namespace: string, name: string): string {
  return `${SERVICE_ACCOUNT}${namespace}:${name}`;
}

/** The groups of a service account, beside those of every authenticated user. */
export function serviceAccountGroups(namespace: string): string[] {
  return ["system:serviceaccounts", `${SERVICE_ACCOUNTS_OF}${namespace}`];
}

/** The service account of a user name: exactly two valid parts after `system:serviceaccount:`. */
export function serviceAccountOf(username: string): { namespace: string; name: string } | undefined {
  if (!username.startsWith(SERVICE_ACCOUNT)) return undefined;
  const [namespace, name, ...more] = username.slice(SERVICE_ACCOUNT.length).split(":");
  if (namespace === undefined || name === undefined || more.length > 0) return undefined;
  if (checkDnsLabel(namespace) !== undefined || checkSubdomain(name) !== undefined) return undefined;
  return { namespace, name };
}

/** The node that a kubelet's identity belongs to: the name alone proves nothing, nor does the group. */
export function isNodeIdentity(userInfo: Sender | JsonObject | undefined): string | undefined {
  const username = usernameOf(userInfo);
  if (!username.startsWith(NODE) || username === NODE || !groupsOf(userInfo).includes(NODES))
    return undefined;
  return username.slice(NODE.length);
}

/** Whether the one who sends the request is this principal. */
export function matchesActor(principal: Principal, userInfo: Sender | JsonObject | undefined): boolean {
  const username = usernameOf(userInfo);
  if (principal.kind === "user") return username !== "" && username === principal.name;
  const account = serviceAccountOf(username);
  return account !== undefined && account.name === principal.name && isIn(principal, account.namespace);
}

function isIn(principal: ServiceAccountPrincipal, namespace: string): boolean {
  if (principal.namespacePrefix === true) return namespace.startsWith(principal.namespace);
  return namespace === principal.namespace;
}

function usernameOf(userInfo: Sender | JsonObject | undefined): string {
  return stringAt(userInfo as Json | undefined, "username") ?? "";
}

function groupsOf(userInfo: Sender | JsonObject | undefined): readonly Json[] {
  return listAt(userInfo as Json | undefined, "groups");
}
