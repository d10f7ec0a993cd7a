import { type Json, type JsonObject, listAt, stringAt } from "../../../core/json.ts";
import { checkDnsLabel } from "../../../core/kubernetes/names.ts";
import { parsePrincipal, type Sender } from "../../../core/kubernetes/principals.ts";
import type { EntryList, Group, GroupEntry, GroupOrigin, Role } from "../groups/group.ts";

const CONTROL_CHARACTER = /\p{Cc}/u;
const SERVICE_ACCOUNTS_OF = "system:serviceaccounts:";
const DEFAULT_ACCOUNT = "default";
/** An access review takes no longer name, and none is needed. */
export const ENTRY_LENGTH = 512;

const ROLES: Readonly<Record<EntryList, Role>> = {
  authorizedUsers: "both",
  exactUsers: "actor",
  authorizedGroups: "both",
  assigners: "actor",
  workloads: "pod",
  emergencyUsers: "actor",
  emergencyGroups: "actor",
};

/** What became of an entry; with a problem the entry does not count, and nothing else of the group is affected. */
export interface ParsedEntry {
  readonly entry?: GroupEntry;
  readonly problem?: string;
  readonly warning?: string;
}

/** Reads one entry of a list. Nothing is trimmed or folded. */
export function parseEntry(text: Json, list: EntryList, origin: GroupOrigin): ParsedEntry {
  if (typeof text !== "string") return { problem: "must be a string" };
  if (text.length > ENTRY_LENGTH) return { problem: `is longer than ${ENTRY_LENGTH} characters` };
  const base = { entry: text, list, origin, as: ROLES[list], namespace: "" };
  if (list === "authorizedGroups" || list === "emergencyGroups") return groupEntry(text, base);
  if (list === "exactUsers") {
    const problem = plainProblem(text);
    return problem === undefined ? { entry: { ...base, kind: "user", name: text } } : { problem };
  }
  const read = parsePrincipal(text);
  if ("problem" in read)
    return { problem: read.problem.replace("the form {user: …}", "the list exactUsers") };
  if (read.kind === "user")
    return list === "workloads"
      ? { problem: `"${text}" is a user, and users run no pods: write <namespace>/<service account>` }
      : { entry: { ...base, as: "actor", kind: "user", name: text } };
  const { namespace, name, namespacePrefix } = read;
  if (namespacePrefix !== true) return { entry: { ...base, kind: "serviceAccount", namespace, name } };
  if (list === "emergencyUsers")
    return { problem: `"${text}": an emergency identity must be named in full, without "*"` };
  return { entry: { ...base, kind: "prefix", namespace, name }, warning: prefixWarning(namespace) };
}

function groupEntry(text: string, base: Omit<GroupEntry, "kind" | "name">): ParsedEntry {
  const problem = plainProblem(text);
  if (problem !== undefined) return { problem };
  const namespace = text.startsWith(SERVICE_ACCOUNTS_OF) ? text.slice(SERVICE_ACCOUNTS_OF.length) : undefined;
  const runsPods = namespace !== undefined && base.list === "authorizedGroups";
  if (namespace !== undefined && checkDnsLabel(namespace) !== undefined)
    return { problem: `"${text}": what follows ${SERVICE_ACCOUNTS_OF} must be a namespace` };
  const entry: GroupEntry = { ...base, as: runsPods ? "both" : "actor", kind: "group", name: text };
  return EVERYONE.has(text)
    ? { entry, warning: `"${text}" is a group that nearly everyone belongs to` }
    : { entry };
}

const EVERYONE: ReadonlySet<string> = new Set([
  "system:authenticated",
  "system:unauthenticated",
  "system:serviceaccounts",
]);

/** Of users and groups that are named as they are. */
function plainProblem(text: string): string | undefined {
  if (text === "") return "must not be empty";
  if (CONTROL_CHARACTER.test(text)) return "has a control character in it";
  return text.trim() === text ? undefined : `"${text}" begins or ends with a space`;
}

/** OpenShift reserves these for itself; elsewhere a user that may create namespaces can choose any. */
function prefixWarning(prefix: string): string {
  return `"${prefix}*" authorises every namespace with that beginning: make sure that users can't create one`;
}

/** The entry by which the sender of a request may assign pods to the group's nodes. */
export function actorMatches(
  userInfo: Sender | JsonObject | undefined,
  group: Group,
): GroupEntry | undefined {
  return group.index.actor(usernameOf(userInfo), groupsOf(userInfo));
}

/** The emergency entry that the sender of a request matches. */
export function emergencyMatches(
  userInfo: Sender | JsonObject | undefined,
  group: Group,
): GroupEntry | undefined {
  return group.emergencyIndex.actor(usernameOf(userInfo), groupsOf(userInfo));
}

/** The entry by which a pod may run on the group's nodes. */
export function podMatches(
  namespace: string,
  serviceAccount: string | undefined,
  group: Group,
): GroupEntry | undefined {
  return group.index.pod(namespace, serviceAccount || DEFAULT_ACCOUNT);
}

function usernameOf(userInfo: Sender | JsonObject | undefined): string {
  return stringAt(userInfo as Json | undefined, "username") ?? "";
}

function groupsOf(userInfo: Sender | JsonObject | undefined): readonly string[] {
  return listAt(userInfo as Json | undefined, "groups").filter((one) => typeof one === "string");
}
