import type { GroupEntry } from "../groups/group.ts";

const SERVICE_ACCOUNT = "system:serviceaccount:";
const SERVICE_ACCOUNTS_OF = "system:serviceaccounts:";

/** The entries of a group by what they match, so that a request costs the same with ten entries as with a thousand. */
export class EntryIndex {
  readonly #actors = new Map<string, GroupEntry>();
  readonly #actorGroups = new Map<string, GroupEntry>();
  readonly #actorPrefixes: GroupEntry[] = [];
  /** By namespace and, where only the account itself counts, `namespace/account`. */
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
    else addFirst(this.#actors, kind === "user" ? name : `${SERVICE_ACCOUNT}${namespace}:${name}`, entry);
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
