import type { EventToWrite, ObjectReference } from "../../core/decision/finding.ts";
import { stringAt } from "../../core/json.ts";
import { groupVersionOf } from "../../core/kubernetes/object.ts";
import type { WorkloadTable } from "../../core/kubernetes/workloads.ts";
import { StatusError } from "../client/api-response.ts";
import type { Client } from "../client/client.ts";
import { collectionPath, pathSegment, type ServedResource } from "../client/discovery.ts";

/** The uid of a stored object; `undefined` if no such object exists, or usher may not read it. Rejects while that is unknown. */
export type FindLive = (object: ObjectReference) => Promise<string | undefined>;

const CLUSTER_SCOPED: Readonly<Record<string, string>> = { Namespace: "namespaces", Node: "nodes" };

/** Reads namespaces, nodes and workloads: the objects of admission events. */
export function createFindLive(client: Client, workloads: WorkloadTable): FindLive {
  return async ({ apiVersion = "v1", kind, namespace, name }) => {
    const served = servedAs(apiVersion, kind, workloads);
    if (served === undefined || name === "" || (served.namespaced && namespace === undefined))
      return undefined;
    const collection = collectionPath(served, served.namespaced ? namespace : undefined);
    const answer = await client.request("GET", `${collection}/${pathSegment("name", name)}`);
    if (answer.status >= 500 || answer.status === 429)
      throw new StatusError(`reading ${kind} ${name}`, answer);
    return answer.status === 200 ? stringAt(answer.body, "metadata", "uid") : undefined;
  };
}

function servedAs(apiVersion: string, kind: string, workloads: WorkloadTable): ServedResource | undefined {
  const { group } = groupVersionOf(apiVersion);
  const resource = group === "" && Object.hasOwn(CLUSTER_SCOPED, kind) ? CLUSTER_SCOPED[kind] : undefined;
  if (resource !== undefined) return { group, version: "v1", resource, namespaced: false };
  const workload = workloads.byKind(group, kind);
  return workload && { ...workload, namespaced: true };
}

/**
 * An event about the object that its review names, if it is stored; otherwise about its namespace; `undefined` if that
 * does not exist either. So a forged review can't create an event about an object of its choice.
 */
export async function regardingLive(event: EventToWrite, find: FindLive): Promise<EventToWrite | undefined> {
  const { regarding, message } = event;
  const { kind, namespace, name } = regarding;
  const uid = await find(regarding);
  if (uid !== undefined && (regarding.uid ?? uid) === uid)
    return { ...event, regarding: { ...regarding, uid } };
  if (namespace === undefined) return undefined;
  const owner: ObjectReference = { apiVersion: "v1", kind: "Namespace", name: namespace, namespace };
  const found = await find(owner);
  if (found === undefined) return undefined;
  return { ...event, regarding: { ...owner, uid: found }, message: `${kind} ${name}: ${message}` };
}
