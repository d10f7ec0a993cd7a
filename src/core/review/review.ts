import { patchOf } from "../decision/patch.ts";
import { type AdmissionRequest, supposedRequest, type UserInfo } from "../decision/request.ts";
import { evaluate, type Host } from "../evaluate/evaluate.ts";
import { draftOf, type Evaluation } from "../evaluate/evaluate-hooks.ts";
import { at, isObject, type JsonObject } from "../json.ts";
import { admissionDefaults } from "../kubernetes/defaults/defaults.ts";
import { serviceAccountGroups, serviceAccountUser } from "../kubernetes/principals.ts";
import { POD } from "../kubernetes/workloads.ts";
import type { Assembly } from "../module/assembly.ts";
import { type ReviewResult, resultOf } from "./result.ts";

/** The context of evaluation: an assembly, and the facts beyond its view. */
export interface Stage extends Pick<Host, "fetch" | "commit"> {
  readonly assembly: Assembly;
  /** An allowed object, for stages in which it counts for later requests. */
  readonly admit: (request: AdmissionRequest, object: JsonObject) => void;
}

export interface Review {
  readonly result: ReviewResult;
  /** The mutating phase, whose edits --emit replays on the manifest. */
  readonly evaluation: Evaluation;
  /** The phases that ran: mutate, and if it does not deny, validate. */
  readonly phases: readonly Evaluation[];
  /** The created pod, or one of the template, with usher's changes. Absent if there is none, or the request is denied. */
  readonly pod?: JsonObject;
}

/**
 * Evaluates one request exactly as the webhook would: mutate, then validate on the result. An allowed request counts
 * for the next.
 */
async function review(
  request: AdmissionRequest,
  stage: Stage,
  options: { readonly trace: boolean; readonly now: number },
): Promise<Review> {
  const { assembly } = stage;
  const host: Host = {
    fetch: (needs) => stage.fetch(needs),
    commit: (commit) => stage.commit(commit),
    expired: () => false,
  };
  const { trace, now } = options;
  const call = { assembly, hooks: assembly.hooks, request, now, trace, draft: draftOf(request) };
  const mutated = await evaluate({ ...call, phase: "mutate" }, host);
  const patch = request.object === undefined ? [] : patchOf(mutated.draft);
  const phases = [mutated];
  // A request that the first phase denies never reaches the second.
  if (mutated.denials.length === 0) phases.push(await evaluate({ ...call, phase: "validate" }, host));
  if (phases.every(({ denials }) => denials.length === 0)) stage.admit(request, mutated.draft.object);
  return {
    result: resultOf(request, phases, patch, trace ? assembly.hooks : undefined),
    evaluation: mutated,
    phases,
  };
}

/** The service accounts in kube-system by which controllers create pods of a template. */
const CONTROLLERS: Readonly<Record<string, string>> = {
  Deployment: "replicaset-controller",
  ReplicaSet: "replicaset-controller",
  ReplicationController: "replication-controller",
  StatefulSet: "statefulset-controller",
  DaemonSet: "daemon-set-controller",
  Job: "job-controller",
  CronJob: "job-controller",
};

/** The user that creates the pods of a controller of this kind; `undefined` for a controller that Kubernetes does not have. */
export function podCreator(kind: string): UserInfo | undefined {
  const controller = CONTROLLERS[kind];
  return controller === undefined
    ? undefined
    : userInfoFor(serviceAccountUser("kube-system", controller), []);
}

/** Reviews a request, and for an allowed workload a pod of its template too: a workload whose pods are refused never runs. */
export async function reviewWithPods(
  request: AdmissionRequest,
  stage: Stage,
  options: Parameters<typeof review>[2],
): Promise<Review> {
  const reviewed = await review(request, stage, options);
  const { result, evaluation } = reviewed;
  if (result.verdict === "deny") return reviewed;
  const object = evaluation.draft.object;
  if (request.kind.group === "" && request.kind.kind === "Pod" && request.subResource === "")
    return { ...reviewed, pod: object };
  const pod = podOf(request, object, stage);
  if (pod === undefined) return reviewed;
  const ofPod = await review(pod, stage, { trace: false, now: options.now });
  const { violations } = ofPod.result;
  return violations.length === 0
    ? { ...reviewed, pod: ofPod.evaluation.draft.object }
    : { ...reviewed, result: { ...result, podViolations: violations } };
}

/** As the controller creates it, without fields that depend on the pod's number or node. It is a dry run and does not count. */
function podOf(
  request: AdmissionRequest,
  object: JsonObject,
  { assembly }: Stage,
): AdmissionRequest | undefined {
  const { kind, subResource, namespace, name, uid } = request;
  const workload = assembly.installation.workloads.byKind(kind.group, kind.kind);
  const userInfo = podCreator(kind.kind);
  if (
    workload === undefined ||
    workload.template.length === 0 ||
    subResource !== "" ||
    userInfo === undefined
  )
    return undefined;
  const template = at(object, ...workload.template);
  if (!isObject(template) || !isObject(template["spec"])) return undefined;
  const { labels, annotations } = isObject(template["metadata"]) ? template["metadata"] : {};
  const owner = { apiVersion: apiVersionOf(kind), kind: kind.kind, name, uid, controller: true };
  const metadata = { generateName: `${name}-`, namespace, labels, annotations, ownerReferences: [owner] };
  const pod = JSON.parse(
    JSON.stringify({ apiVersion: "v1", kind: "Pod", metadata, spec: template["spec"] }),
  ) as JsonObject;
  const created = admissionDefaults(pod, { priorityClasses: [], operation: "CREATE" });
  return supposedRequest(POD, created, { uid: `${uid}-pod`, namespace, userInfo, unvalidated: true });
}

function apiVersionOf({ group, version }: AdmissionRequest["kind"]): string {
  return group === "" ? version : `${group}/${version}`;
}

const SERVICE_ACCOUNT = /^system:serviceaccount:([^:]+):[^:]+$/;

/** The user of a request, with the groups that the API server adds on impersonation. */
export function userInfoFor(username: string, groups: readonly string[]): UserInfo {
  const [, namespace] = SERVICE_ACCOUNT.exec(username) ?? [];
  const own = groups.length === 0 && namespace !== undefined ? serviceAccountGroups(namespace) : groups;
  const known = username === "system:anonymous" ? "system:unauthenticated" : "system:authenticated";
  const complete = own.includes("system:authenticated") || own.includes("system:unauthenticated");
  return { username, groups: complete ? [...own] : [...own, known] };
}
