import { type Json, type JsonObject, listAt, stringAt } from "../../../core/json.ts";
import { checkDnsLabel } from "../../../core/kubernetes/names.ts";
import {
  parsePrincipal,
  SERVICE_ACCOUNT,
  SERVICE_ACCOUNTS_OF,
  type Sender,
  serviceAccountUser,
} from "../../../core/kubernetes/principals.ts";
import type { EntryList, Group, GroupEntry, GroupOrigin, Role } from "./group.ts";

const CONTROL_CHARACTER = /\p{Cc}/u;
const DEFAULT_ACCOUNT = "default";
/** An access review accepts no longer name, and none is needed. */
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

/** The result of an entry; with a problem the entry does not count, and nothing else of the group is affected. */
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

/** The entries of a group by their matches, so that a request costs the same with ten entries as with a thousand. */
export class EntryIndex {
  readonly #actors = new Map<string, GroupEntry>();
  readonly #actorGroups = new Map<string, GroupEntry>();
  readonly #actorPrefixes: GroupEntry[] = [];
  /** By namespace and, if only the account itself counts, `namespace/account`. */
  readonly #pods = new Map<string, GroupEntry>();
  readonly #podPrefixes: GroupEntry[] = [];
  readonly #exact: boolean;

  constructor(entries: readonly GroupEntry[], scope: "Namespace" | "Exact") {
    this.#exact = scope === "Exact";
    for (const entry of entries) {
      if (entry.as !== "pod") this.#addActor(entry);
      if (entry.as !== "actor") this.#addPod(entry);
    }
  }

  /** The entry by which a subject may assign pods. */
  actor(username: string, groups: readonly string[]): GroupEntry | undefined {
    const named = username === "" ? undefined : this.#actors.get(username);
    if (named !== undefined) return named;
    for (const group of groups) {
      const found = this.#actorGroups.get(group);
      if (found !== undefined) return found;
    }
    if (this.#actorPrefixes.length === 0 || !username.startsWith(SERVICE_ACCOUNT)) return undefined;
    const [namespace = "", name = "", ...more] = username.slice(SERVICE_ACCOUNT.length).split(":");
    if (more.length > 0) return undefined;
    return this.#actorPrefixes.find((one) => name === one.name && namespace.startsWith(one.namespace));
  }

  /** The entry by which a pod may run on the group's nodes. */
  pod(namespace: string, account: string): GroupEntry | undefined {
    if (namespace === "") return undefined;
    const ofNamespace = this.#pods.get(namespace);
    if (ofNamespace !== undefined) return ofNamespace;
    const found = this.#exact ? this.#pods.get(`${namespace}/${account}`) : undefined;
    if (found !== undefined) return found;
    return this.#podPrefixes.find(
      (one) => namespace.startsWith(one.namespace) && (!this.#exact || one.name === account),
    );
  }

  #addActor(entry: GroupEntry): void {
    const { kind, namespace, name } = entry;
    if (kind === "prefix") this.#actorPrefixes.push(entry);
    else if (kind === "group") addFirst(this.#actorGroups, name, entry);
    else addFirst(this.#actors, kind === "user" ? name : serviceAccountUser(namespace, name), entry);
  }

  #addPod(entry: GroupEntry): void {
    const { kind, namespace, name } = entry;
    if (kind === "prefix") this.#podPrefixes.push(entry);
    else if (kind === "serviceAccount")
      addFirst(this.#pods, this.#exact ? `${namespace}/${name}` : namespace, entry);
    else if (kind === "group" && name.startsWith(SERVICE_ACCOUNTS_OF))
      addFirst(this.#pods, name.slice(SERVICE_ACCOUNTS_OF.length), entry);
  }
}

function addFirst(map: Map<string, GroupEntry>, key: string, entry: GroupEntry): void {
  if (!map.has(key)) map.set(key, entry);
}
