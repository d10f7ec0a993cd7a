import type { AdmissionRequest } from "../../../core/decision/request.ts";
import type { Installation } from "../../../core/installation/installation.ts";
import { at, equal, isObject, type JsonObject } from "../../../core/json.ts";
import { isBeingDeleted, isMirrorPod, labelsOf } from "../../../core/kubernetes/object.ts";
import { matchesActor, serviceAccountOf, serviceAccountUser } from "../../../core/kubernetes/principals.ts";
import {
  isPod,
  type PodTemplate,
  podTemplateOf,
  type WorkloadKind,
} from "../../../core/kubernetes/workloads.ts";
import { CRITERIA_FIELDS } from "../criteria/criteria.ts";
import { ownedBy } from "../select/eligibility.ts";
import { trustedControllers } from "../settings.ts";

/** The part of a request that enforcement evaluates. */
export interface EnforcementScope {
  readonly template: PodTemplate;
  readonly labels: JsonObject | undefined;
  /** Of an UPDATE: the template as it is stored. */
  readonly old: { readonly template: PodTemplate; readonly labels: JsonObject | undefined } | undefined;
}

/** Whether a request is evaluated: the table in the README, row by row. */
export function enforcementScope(
  request: AdmissionRequest,
  object: JsonObject,
  workload: WorkloadKind,
  installation: Installation,
): EnforcementScope | undefined {
  const template = podTemplateOf(object, workload);
  if (template === undefined || isBeingDeleted(object)) return undefined;
  // Any author can write the annotation of a mirror pod: it counts from kubelets only.
  if (isPod(workload) && isMirrorPod(object) && request.userInfo.username.startsWith("system:node:"))
    return undefined;
  if (ownedBy(object, workload, installation.workloads) !== undefined && isController(request, installation))
    return undefined;
  const labels = labelsIn(template);
  if (request.operation !== "UPDATE") return { template, labels, old: undefined };
  const stored = podTemplateOf(request.oldObject, workload);
  if (stored === undefined) return { template, labels, old: undefined };
  const oldLabels = labelsIn(stored);
  const same =
    CRITERIA_FIELDS.every((field) => equal(at(stored.spec, field), at(template.spec, field))) &&
    equal(oldLabels ?? {}, labels ?? {});
  return same ? undefined : { template, labels, old: { template: stored, labels: oldLabels } };
}

function labelsIn({ metadata }: PodTemplate): JsonObject | undefined {
  const labels = labelsOf({ metadata: metadata ?? {} });
  return isObject(labels) ? labels : undefined;
}

/** kube-controller-manager where its controllers have no service accounts of their own. */
const CONTROLLER_MANAGER = "system:kube-controller-manager";

/** The service accounts of controllers that create pods and workloads, or write them back. Only kube-system can have them. */
const CONTROLLERS: ReadonlySet<string> = new Set([
  "cronjob-controller",
  "daemon-set-controller",
  "deployment-controller",
  "generic-garbage-collector",
  "horizontal-pod-autoscaler",
  "job-controller",
  "replicaset-controller",
  "replication-controller",
  "statefulset-controller",
  "ttl-after-finished-controller",
]);

/** The users of those. */
export const CONTROLLER_NAMES: readonly string[] = [
  CONTROLLER_MANAGER,
  ...[...CONTROLLERS].map((name) => serviceAccountUser("kube-system", name)),
];

/**
 * Whether a controller of Kubernetes, or of the configuration, sends the request. Only the identity counts: owner references are part of
 * the object, and any author of an object can write them.
 */
export function isController({ userInfo }: AdmissionRequest, installation: Installation): boolean {
  const { username } = userInfo;
  if (username === CONTROLLER_MANAGER) return true;
  const account = serviceAccountOf(username);
  if (account?.namespace === "kube-system" && CONTROLLERS.has(account.name)) return true;
  return trustedControllers(installation).some((principal) => matchesActor(principal, userInfo));
}
