import { allow, deny, need, type Result } from "../../../core/decision/decision.ts";
import type { Finding } from "../../../core/decision/finding.ts";
import type { Fact, Need } from "../../../core/decision/need.ts";
import { isObject, type JsonObject, stringAt } from "../../../core/json.ts";
import { isMirrorPod, labelsOf, nameOf } from "../../../core/kubernetes/object.ts";
import type { Context } from "../../../core/module/module.ts";
import { OS_LABEL } from "../os/resolve.ts";
import { ownerOf } from "../security/admission/exemptions.ts";
import { settingsOf } from "../settings.ts";
import { NODE_READ, nodeOS } from "./node-os.ts";

/**
 * Compares the OS of a pod with that of its node, as the kubelet does, before the pod is bound to it.
 *
 * - By `spec.os` and by the pod's label `kubernetes.io/os`, the two that a kubelet compares; the label alone never
 *   refuses.
 * - Never for mirror pods, nor if the node or its OS is unknown.
 * - At most one read of the pod and one of the node; a node in the view is read only before a mismatch is reported.
 * - Passes if something can't be read: the kubelet still decides.
 */
export function evaluateNode(context: Context): Result {
  const { request } = context;
  return request.kind.kind === "Binding" ? evaluateBinding(context) : evaluatePod(context, request.object);
}

function evaluateBinding(context: Context): Result {
  const { request, facts } = context;
  const binding = request.object;
  const target = stringAt(binding, "target", "kind") ?? "";
  const node = stringAt(binding, "target", "name") ?? "";
  const name = request.name === "" ? (binding === undefined ? "" : nameOf(binding)) : request.name;
  if (node === "" || name === "" || (target !== "" && target !== "Node")) return allow();
  // OS and uid of a pod never change, and the scheduler has seen it in the same watch cache.
  const wanted: Need = { get: { resource: "pods", namespace: request.namespace, name }, anyVersion: true };
  const fact = facts.of(wanted);
  if (fact === undefined) return need(wanted);
  const pod = foundIn(fact);
  if (pod === undefined) return "failed" in fact ? allow([unread(fact.failed)]) : allow();
  const uid = stringAt(binding, "metadata", "uid") ?? "";
  // The API server refuses a binding for an earlier pod of the same name.
  if (uid !== "" && uid !== stringAt(pod, "metadata", "uid")) return allow();
  return compare(context, pod, node, stringAt(binding, "metadata", "labels", OS_LABEL));
}

/** A pod that is created with its node is never bound. */
function evaluatePod(context: Context, pod: JsonObject | undefined): Result {
  const node = stringAt(pod, "spec", "nodeName") ?? "";
  return pod === undefined || node === "" ? allow() : compare(context, pod, node);
}

/** `label` is the value that a Binding sets over the pod's own. */
function compare(context: Context, pod: JsonObject, nodeName: string, label?: string): Result {
  const os = stringAt(pod, "spec", "os", "name") ?? "";
  const labelled = label ?? stringAt(labelsOf(pod), OS_LABEL);
  if ((os === "" && labelled === undefined) || isMirrorPod(pod)) return allow();
  const differs = (node: JsonObject) => {
    const runs = nodeOS(node);
    return runs !== undefined && (runs !== (os === "" ? runs : os) || runs !== (labelled ?? runs));
  };
  const known = context.view.get(NODE_READ.resource, "", nodeName);
  if (known !== undefined && nodeOS(known) !== undefined && !differs(known)) return allow();
  const wanted: Need = { get: { resource: NODE_READ.resource, name: nodeName }, live: true };
  const fact = context.facts.of(wanted);
  if (fact === undefined) return need(wanted);
  const node = foundIn(fact);
  if (node === undefined || nodeOS(node) === undefined) {
    const why = "failed" in fact ? fact.failed : node === undefined ? "no such node" : "it has reported none";
    return allow([unknownNode(context, pod, nodeName, why)]);
  }
  if (!differs(node)) return allow();
  return mismatch(context, pod, { os, labelled, node: nodeName, runs: nodeOS(node) ?? "" });
}

interface Mismatch {
  /** Empty: the pod names its OS only by its label. */
  readonly os: string;
  readonly labelled: string | undefined;
  readonly node: string;
  readonly runs: string;
}

/** The label alone refuses no pod: the scheduler does not see it, and would choose the same node again. */
function mismatch(context: Context, pod: JsonObject, found: Mismatch): Result {
  const denies = found.os !== "" && settingsOf(context.installation).os.nodeMismatch === "Deny";
  const { namespace } = context.request;
  const finding: Finding = {
    rule: "node-mismatch",
    outcome: denies ? "violated" : "would-violate",
    code: "USHER-O04",
    message: `pod ${namespace}/${podName(pod)} ${describe(found)}`,
    ...(denies ? {} : { warn: 60 }),
    event: {
      type: "Warning",
      reason: "PodOSNotSupported",
      regarding: ownerOf({ ...context.request, object: pod }, context.view),
    },
  };
  return denies ? deny({ code: 403, reason: "Forbidden" }, [finding]) : allow([finding]);
}

function describe({ os, labelled, node, runs }: Mismatch): string {
  if (os !== "" && os !== runs)
    return `is for ${os}, node ${node} runs ${runs}: add nodeSelector ${OS_LABEL}: ${os} to the pod or its template`;
  return `has the label ${OS_LABEL}: ${labelled}, node ${node} runs ${runs}, and its kubelet refuses the pod: remove the label, or add a nodeSelector of the same value`;
}

function unknownNode(context: Context, pod: JsonObject, node: string, why: string): Finding {
  const { namespace } = context.request;
  return {
    rule: "node-mismatch",
    outcome: "skipped",
    message: `OS of node ${node} is unknown (${why}): pod ${namespace}/${podName(pod)} was not compared with it`,
    event: {
      type: "Normal",
      reason: "NodeOSUnknown",
      regarding: ownerOf({ ...context.request, object: pod }, context.view),
    },
  };
}

function unread(why: string): Finding {
  return { rule: "node-mismatch", outcome: "failed", message: `pod could not be read: ${why}` };
}

function podName(pod: JsonObject): string {
  const name = nameOf(pod);
  return name === "" ? `${stringAt(pod, "metadata", "generateName") ?? ""}*` : name;
}

function foundIn(fact: Fact): JsonObject | undefined {
  return "found" in fact && isObject(fact.found) ? fact.found : undefined;
}
