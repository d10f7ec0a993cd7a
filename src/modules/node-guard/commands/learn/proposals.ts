import { mergeObservations, type Observation } from "../../../../core/evaluate/observations.ts";
import { parsePrincipal, serviceAccountOf } from "../../../../core/kubernetes/principals.ts";
import { byText } from "../../../../core/order.ts";
import { isAdministrator } from "../../groups/administrators.ts";

/** A refusal, or a would-be refusal in Inform: its recorded fields. */
export interface Refusal {
  readonly group: string;
  /** The assigner: empty if the actor was authorised, or was not checked. */
  readonly actor: string;
  /** The pod's account: both empty if the pod was authorised. */
  readonly namespace: string;
  readonly serviceAccount: string;
}

/** An entry that would have authorised a refused request. */
export interface Proposal {
  readonly group: string;
  readonly list: "assigners" | "workloads" | "exactUsers" | "emergencyUsers";
  readonly entry: string;
  readonly count: number;
  /** RFC 3339. */
  readonly first: string;
  readonly last: string;
}

export function refusalFields({ group, actor, namespace, serviceAccount }: Refusal): Record<string, string> {
  return { group, actor, namespace, serviceAccount };
}

/**
 * Entries to consider, the most frequent first; for a platform's administrator an emergency entry, as for `oc debug
 * node/…`. Only complete names: a prefix would authorise namespaces that do not exist yet. An administrator decides
 * which to add, because an attacker's attempts are among them.
 */
export function proposalsOf(observations: readonly Observation[]): Proposal[] {
  const wanted = observations.flatMap((one): Observation[] => {
    const { group = "", actor = "", namespace = "", serviceAccount = "" } = one.fields;
    // An emergency entry vouches for the pod.
    const entries = isAdministrator(actor)
      ? [{ list: "emergencyUsers" as const, entry: actor }]
      : [actorEntry(actor), workloadEntry(namespace, serviceAccount)];
    return entries.flatMap((entry) => (entry === undefined ? [] : [{ ...one, fields: { group, ...entry } }]));
  });
  return mergeObservations(wanted)
    .map(({ fields, count, first, last }) => ({
      group: fields["group"] ?? "",
      list: fields["list"] as Proposal["list"],
      entry: fields["entry"] ?? "",
      count,
      first: new Date(first).toISOString(),
      last: new Date(last).toISOString(),
    }))
    .sort((a, b) => b.count - a.count || compare(a, b));
}

interface Entry {
  readonly list: Proposal["list"];
  readonly entry: string;
  readonly [field: string]: string;
}

function actorEntry(actor: string): Entry | undefined {
  if (actor === "") return undefined;
  const account = serviceAccountOf(actor);
  if (account !== undefined) return { list: "assigners", entry: `${account.namespace}/${account.name}` };
  const principal = parsePrincipal(actor);
  if ("kind" in principal && principal.kind === "user") return { list: "assigners", entry: actor };
  // `corp/alice` among assigners would be a service account. A name that no list can express is not proposed.
  return actor.includes("/") && !actor.startsWith("system:serviceaccount:") && actor.trim() === actor
    ? { list: "exactUsers", entry: actor }
    : undefined;
}

function workloadEntry(namespace: string, serviceAccount: string): Entry | undefined {
  if (namespace === "") return undefined;
  const entry = `${namespace}/${serviceAccount === "" ? "default" : serviceAccount}`;
  const principal = parsePrincipal(entry);
  if (!("kind" in principal) || principal.kind !== "serviceAccount" || principal.namespacePrefix === true)
    return undefined;
  return { list: "workloads", entry };
}

const compare = byText(({ group, list, entry }: Proposal) => JSON.stringify([group, list, entry]));
