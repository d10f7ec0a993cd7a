import { mergeObservations, type Observation } from "../../../../core/evaluate/observations.ts";
import { at, isObject, type Json, type JsonObject, stringAt } from "../../../../core/json.ts";
import { type Refusal, refusalFields } from "./proposals.ts";

const PREFIX = "/node-guard.";
/** Between values of one annotation, of a request that concerns several groups. */
const SEPARATOR = "; ";

export interface AuditLog {
  readonly observations: readonly Observation[];
  /** Requests that were, or would have been, refused. */
  readonly requests: number;
  /** Lines that are not audit events. */
  readonly skipped: number;
}

/** Reads refusals from an API server's audit log: JSON lines, at level Metadata or above. */
export function readAuditLog(text: string): AuditLog {
  let observations: Observation[] = [];
  let [requests, skipped] = [0, 0];
  for (const line of text.split("\n")) {
    if (line.trim() === "") continue;
    const event = eventOf(line);
    if (event === undefined) {
      skipped += 1;
      continue;
    }
    const refusals = refusalsOf(event);
    if (refusals.length === 0) continue;
    requests += 1;
    const time = timeOf(event);
    for (const refusal of refusals)
      observations.push({ fields: refusalFields(refusal), count: 1, first: time, last: time });
    if (observations.length > 10_000) observations = mergeObservations(observations);
  }
  return { observations: mergeObservations(observations), requests, skipped };
}

function eventOf(line: string): JsonObject | undefined {
  try {
    const parsed = JSON.parse(line) as Json;
    return isObject(parsed) && stringAt(parsed, "kind") === "Event" ? parsed : undefined;
  } catch {
    return undefined;
  }
}

/** Of several groups the annotations have each value once, so that each group gets the entries of all. */
function refusalsOf(event: JsonObject): Refusal[] {
  // The same request is logged at each stage.
  if (stringAt(event, "stage") !== "ResponseComplete") return [];
  const byPolicy = refusedByPolicy(event);
  if (byPolicy !== undefined) return [byPolicy];
  const values = annotationsOf(event);
  const verdicts = values("verdict");
  if (!verdicts.includes("deny") && !verdicts.includes("would-deny")) return [];
  const actor = values("actor-ok").includes("false") ? (actorOf(event) ?? "") : "";
  const pod = podOf(event, values("pod-ok").includes("false"));
  if (actor === "" && pod.namespace === "") return [];
  return values("group").map((group) => ({ group, actor, ...pod }));
}

/** The fallback's wording of `refusal`. Only whether a side failed is read from it: names come from the event itself. */
const REFUSED_BY_POLICY =
  /^[^:]+: ValidatingAdmissionPolicy 'usher-node-guard-[a-z0-9-]+' .*? denied request: node-guard: pod may not be \w+ to node \S+ of protected group ("(?:[^"\\]|\\.)*"):( user .*?)?(?: and)?( namespace \S+)? not authorised\. /;

/** A request that the fallback refused, which usher never saw. */
function refusedByPolicy(event: JsonObject): Refusal | undefined {
  if (at(event, "responseStatus", "code") !== 403) return undefined;
  const [found, group, user, pod] =
    REFUSED_BY_POLICY.exec(stringAt(event, "responseStatus", "message") ?? "") ?? [];
  if (found === undefined || group === undefined) return undefined;
  return {
    group: JSON.parse(group),
    actor: user === undefined ? "" : (actorOf(event) ?? ""),
    ...podOf(event, pod !== undefined),
  };
}

function podOf(event: JsonObject, failed: boolean): Pick<Refusal, "namespace" | "serviceAccount"> {
  const namespace = failed ? (stringAt(event, "objectRef", "namespace") ?? "") : "";
  const account = stringAt(event, "requestObject", "spec", "serviceAccountName") ?? "default";
  return { namespace, serviceAccount: namespace === "" ? "" : account };
}

/** The user that the API server authorized: the impersonated one behind an impersonation. */
function actorOf(event: JsonObject): string | undefined {
  return stringAt(event, "impersonatedUser", "username") ?? stringAt(event, "user", "username");
}

/** The values of the module's annotations; keys begin with the name of the webhook that wrote them. */
function annotationsOf(event: JsonObject): (key: string) => readonly string[] {
  const annotations = isObject(event["annotations"]) ? event["annotations"] : {};
  return (wanted) => {
    const found = Object.keys(annotations).filter((key) => key.endsWith(`${PREFIX}${wanted}`));
    const values = found.flatMap((key) => (stringAt(annotations, key) ?? "").split(SEPARATOR));
    return [...new Set(values)].filter((value) => value !== "");
  };
}

function timeOf(event: JsonObject): number {
  const time = Date.parse(stringAt(event, "requestReceivedTimestamp") ?? "");
  return Number.isFinite(time) && time > 0 ? time : 0;
}
