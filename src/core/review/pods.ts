import type { AdmissionRequest, UserInfo } from "../evaluate/request.ts";
import { at, isObject, type JsonObject } from "../json.ts";
import { admissionDefaults } from "../kubernetes/defaults/defaults.ts";
import { type Judgement, judge, type Stage } from "./judge.ts";
import { userInfoFor } from "./user.ts";

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
    : userInfoFor(`system:serviceaccount:kube-system:${controller}`, []);
}

/** Judges a request, and of a workload that is allowed a pod of its template too: a workload whose pods are refused never runs. */
export async function judgeWithPods(
  request: AdmissionRequest,
  stage: Stage,
  options: Parameters<typeof judge>[2],
): Promise<Judgement> {
  const judgement = await judge(request, stage, options);
  const { result, evaluation } = judgement;
  if (result.verdict === "deny") return judgement;
  const object = evaluation.draft.object;
  if (request.kind.group === "" && request.kind.kind === "Pod" && request.subResource === "")
    return { ...judgement, pod: object };
  const pod = podOf(request, object, stage);
  if (pod === undefined) return judgement;
  const ofPod = await judge(pod, stage, { trace: false, now: options.now });
  const { violations } = ofPod.result;
  return violations.length === 0
    ? { ...judgement, pod: ofPod.evaluation.draft.object }
    : { result: { ...result, podViolations: violations }, evaluation };
}

/** As the controller creates it, without what depends on the pod's number or node. It is a dry run: it counts for nothing. */
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
  return {
    uid: `${uid}-pod`,
    kind: { group: "", version: "v1", kind: "Pod" },
    resource: { group: "", version: "v1", resource: "pods" },
    subResource: "",
    name: "",
    namespace,
    operation: "CREATE",
    userInfo,
    object: admissionDefaults(pod, { priorityClasses: [], operation: "CREATE" }),
    oldObject: undefined,
    dryRun: true,
    options: undefined,
    unvalidated: true,
  };
}

function apiVersionOf({ group, version }: AdmissionRequest["kind"]): string {
  return group === "" ? version : `${group}/${version}`;
}
