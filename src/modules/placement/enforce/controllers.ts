import type { AdmissionRequest } from "../../../core/evaluate/request.ts";
import { matchesActor, serviceAccountOf } from "../../../core/kubernetes/principals.ts";
import type { Installation } from "../../../core/module/installation.ts";
import { trustedControllers } from "../settings.ts";

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
