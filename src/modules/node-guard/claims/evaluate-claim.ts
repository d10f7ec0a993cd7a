import type { NeedMore } from "../../../core/decision/decision.ts";
import { type Facts, failureOf, type Need } from "../../../core/decision/need.ts";
import type { AdmissionRequest, UserInfo } from "../../../core/decision/request.ts";
import { at, type JsonObject, stringAt } from "../../../core/json.ts";
import { serviceAccountGroups, serviceAccountUser } from "../../../core/kubernetes/principals.ts";
import type { Group } from "../groups/group.ts";
import { actorMatches, emergencyMatches, podMatches } from "../groups/principals.ts";
import type { Claim } from "./claim.ts";

/** The pod that a request is about, with the request. Of a request about a node only `request` and `name` count. */
export interface GuardedPod {
  readonly request: AdmissionRequest;
  /** `pod shop/web`, the same at every retry of a controller. */
  readonly name: string;
  /** Of the pod. */
  readonly namespace: string;
  /** `undefined`: unknown, as for a Binding. */
  readonly account: string | undefined;
}

/** The service account of a pod; the deprecated field is an alias that the API server fills in both ways. */
export function accountOf(podSpec: JsonObject | undefined): string {
  return stringAt(podSpec, "serviceAccountName") || stringAt(podSpec, "serviceAccount") || "default";
}

/** A generated name is another one at each retry. */
export function describePod(request: AdmissionRequest): string {
  const generated = stringAt(request.object, "metadata", "generateName") ?? "";
  const name = request.operation === "CREATE" && generated !== "" ? `${generated}*` : podNameOf(request);
  return `pod ${request.namespace}/${name}`;
}

/** For a Binding without a name in its URL, the object's. */
export function podNameOf({ name, object }: AdmissionRequest): string {
  return name === "" ? (stringAt(object, "metadata", "name") ?? "") : name;
}

/** A claim on the nodes of some groups, to be evaluated in each. */
export interface GroupsClaim {
  readonly claim: Claim;
  readonly groups: readonly Group[];
  /** Names of nodes, for messages; empty if none is known. */
  readonly nodes: readonly string[];
  /** Why the node counts as a member, if not by its labels. */
  readonly node?: "unknown" | "new";
  /** The pod's service account does not belong to the evaluated pod: it authorises nothing. */
  readonly otherPod?: boolean;
  /** No entry authorises the sender. */
  readonly untrustedActor?: boolean;
}

/** A claim on the nodes of one group, with those who are authorised for it. */
export interface EvaluatedClaim {
  readonly claim: Claim;
  readonly group: Group;
  readonly nodes: readonly string[];
  /** Absent: the claim does not check it. */
  readonly actor?: Party;
  readonly pod?: Party;
  /** An emergency identity answers for the pod. */
  readonly vouched?: string;
  readonly node?: "unknown" | "new";
}

/** The sender of a request, or its pod. */
export interface Party {
  /** How messages name it: `user "mallory"`, `namespace "shop"`. */
  readonly name: string;
  /** The entry that authorises it; `undefined`: none does. */
  readonly by: string | undefined;
}

export type GuardVerdict = "allow" | "would-deny" | "deny";

export function isViolation({ actor, pod, vouched }: EvaluatedClaim): boolean {
  return vouched === undefined && (isUnauthorized(actor) || isUnauthorized(pod));
}

export function isUnauthorized(party: Party | undefined): boolean {
  return party !== undefined && party.by === undefined;
}

export function verdictOf(evaluated: EvaluatedClaim): GuardVerdict {
  const { claim, group } = evaluated;
  if (!isViolation(evaluated) || group.effectiveMode === "Disable" || !claim.refused) return "allow";
  if (group.effectiveMode === "Inform") return "would-deny";
  return claim.early && group.earlyRefusal === "Warn" ? "would-deny" : "deny";
}

export type EvaluatedClaims = { readonly evaluated: readonly EvaluatedClaim[] } | NeedMore;

/** Evaluates a claim in each of its groups: both parties if the claim checks both. */
export function evaluateClaim(claimed: GroupsClaim, subject: GuardedPod, facts: Facts): EvaluatedClaims {
  const { claim, nodes, node, otherPod, untrustedActor } = claimed;
  const evaluated: EvaluatedClaim[] = [];
  const needs: Need[] = [];
  for (const group of claimed.groups) {
    const parties = partiesOf(group, claim, subject, facts, untrustedActor);
    if ("need" in parties) {
      needs.push(...parties.need);
      continue;
    }
    const { actor, pod } = parties;
    const emergency = claim.rule === "assign" ? emergencyMatches(subject.request.userInfo, group) : undefined;
    const unproven = otherPod && (group.serviceAccountScope === "Exact" || group.rbac);
    evaluated.push({
      claim,
      group,
      nodes,
      ...(node === undefined ? {} : { node }),
      ...(actor === undefined ? {} : { actor }),
      ...(pod === undefined ? {} : { pod: unproven ? { ...pod, by: undefined } : pod }),
      ...(emergency === undefined ? {} : { vouched: emergency.entry }),
    });
  }
  return needs.length > 0 ? { need: needs } : { evaluated };
}

/** The groups that do not authorise a party that the claim checks. */
export function blockingGroups(
  groups: readonly Group[],
  claim: Pick<Claim, "actor" | "pod">,
  subject: GuardedPod,
  facts: Facts,
): { readonly groups: readonly Group[] } | NeedMore {
  const blocking: Group[] = [];
  const needs: Need[] = [];
  for (const group of groups) {
    const parties = partiesOf(group, claim, subject, facts);
    if ("need" in parties) needs.push(...parties.need);
    else if (isUnauthorized(parties.actor) || isUnauthorized(parties.pod)) blocking.push(group);
  }
  return needs.length > 0 ? { need: needs } : { groups: blocking };
}

function partiesOf(
  group: Group,
  claim: Pick<Claim, "actor" | "pod">,
  { request, namespace, account }: GuardedPod,
  facts: Facts,
  untrustedActor = false,
): { readonly actor?: Party; readonly pod?: Party } | NeedMore {
  const asksActor = claim.actor === "always" || (claim.actor === "option" && group.checkRequesterOnSelection);
  const actor = !asksActor
    ? undefined
    : untrustedActor
      ? { by: undefined }
      : authorizeActor(group, request, facts);
  const pod = claim.pod ? authorizePod(group, namespace, account, facts) : undefined;
  const needs = [actor, pod].flatMap((one) => (one !== undefined && "need" in one ? one.need : []));
  if (needs.length > 0) return { need: needs };
  const exact = group.serviceAccountScope === "Exact" && account !== undefined;
  return {
    ...(actor !== undefined && "by" in actor
      ? { actor: { name: `user "${request.userInfo.username}"`, by: actor.by } }
      : {}),
    ...(pod !== undefined && "by" in pod
      ? {
          pod: {
            name: exact ? `service account "${namespace}/${account}"` : `namespace "${namespace}"`,
            by: pod.by,
          },
        }
      : {}),
  };
}

/** The entry by which a party is authorised; `undefined`: it is not. */
type Authorized = Pick<Party, "by"> | NeedMore;

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
function authorizePod(
  group: Group,
  namespace: string,
  account: string | undefined,
  facts: Facts,
): Authorized {
  const entry = podMatches(namespace, account, group);
  if (entry !== undefined) return { by: entry.entry };
  if (!group.rbac || account === undefined) return { by: undefined };
  const user: UserInfo = {
    username: serviceAccountUser(namespace, account),
    groups: [...serviceAccountGroups(namespace), "system:authenticated"],
  };
  return review(user, "run-on", group, facts);
}

/** A party that can't be reviewed is not authorised. */
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
