import type { Code } from "../../core/module/module.ts";

export const CODES: readonly Code[] = [
  {
    code: "USHER-P01",
    title: "Conflicting values for a nodeSelector key",
    meaning:
      "A policy wants a nodeSelector key to have a value, but the object or a policy of higher precedence sets another. The existing value is kept; only that key is skipped, the rest of the policy is applied.",
    remedy:
      "If the policy should win, remove the key from the object. Between two policies, give the one that should win a higher spec.priority.",
  },
  {
    code: "USHER-P02",
    title: "Unknown whether a policy selects the object",
    meaning:
      "The policy selects namespaces by their labels, and the labels of this object's namespace are unknown: the namespace does not exist yet, is not in the files, or could not be read in time.",
    remedy:
      "Offline, add the Namespace to the source directory. In a cluster, check that the namespace exists and usher can read it. The policy's spec.failurePolicy says whether such objects are admitted (Ignore) or refused (Fail).",
  },
  {
    code: "USHER-P03",
    title: "A policy that may select the object is invalid",
    meaning:
      "Part of the policy can't be read, and the readable part selects this object. The policy's spec.failurePolicy decides: Ignore admits the object without the policy, Fail refuses it. Other policies are not affected.",
    remedy: "Correct the policy; `usher review FILE --source DIR` names each invalid field.",
  },
  {
    code: "USHER-P10",
    title: "Conflicting values for a field",
    meaning:
      "A policy wants schedulerName, nodeName, priorityClassName or runtimeClassName to have a value, but the object or a policy of higher precedence sets another. The existing value is kept; only that field is skipped. `default-scheduler` counts as unset unless the applied manifest names it.",
    remedy:
      "If the policy should win, remove the field from the object. Between two policies, give the one that should win a higher spec.priority. With spec.onConflict: Refuse the policy refuses such objects instead.",
  },
  {
    code: "USHER-P11",
    title: "No node can meet the requirements of policy and object",
    meaning:
      "The policy's nodeSelector or required node affinity contradicts that of the object or of a policy of higher precedence, for every possible node. The existing requirements are kept; the policy's part is skipped, the rest of it is applied.",
    remedy:
      "Compare nodeSelector and required node affinity of both: one label would need two values, or would have to exist and not exist. Change one of them.",
  },
  {
    code: "USHER-P12",
    title: "Required node affinity, a list, or the work for one object exceeds a limit",
    meaning:
      "Terms are alternatives, so each term of the object is combined with each term of the policy: their numbers multiply. Above 64 terms or 4,096 requirements the policy's required node affinity is left out; with spec.failurePolicy: Fail the object is refused. The same holds for tolerations and other lists above 512 elements. The work for one object is bounded too, so that other requests need not wait: what policies want beyond that, in their order, is left out in the same way. Cluster policies and namespaced policies have separate budgets. A policy that enforces treats requirements that are too large to compare as unmet.",
    remedy:
      "Use fewer policies for one object, and fewer terms and elements: several values of one label fit into one requirement with the operator In, and requirements common to all terms into spec.nodeSelector.",
  },
  {
    code: "USHER-P13",
    title: "Field is immutable on this object",
    meaning:
      "Some fields can't change once an object exists: a Job's template only while the Job is suspended, and then not all of it; a pod only while it has scheduling gates, and then only by additions. What can't be written is left out.",
    remedy: "Recreate the object if it should have the field; new objects accept all of them.",
  },
  {
    code: "USHER-P14",
    title: "The object has a conflicting toleration or topology spread constraint",
    meaning:
      "The policy wants a toleration that the object has with other tolerationSeconds, or a topology spread constraint that the object has differently for the same topology. The one of the object, or of the policy of higher precedence, is kept.",
    remedy: "Remove it from the object, or make both equal. Between two policies, set spec.priority.",
  },
  {
    code: "USHER-P15",
    title: "nodeName and scheduling gates exclude each other",
    meaning:
      "The API server refuses a pod with both a nodeName and scheduling gates, so the one that was set second is left out.",
    remedy: "Set one of them. To bind a gated pod to a node, use spec.nodeSelector or affinity.",
  },
  {
    code: "USHER-P20",
    title: "A referenced object does not exist",
    meaning:
      "A policy sets nodeName, priorityClassName or runtimeClassName, and there is no Node, PriorityClass or RuntimeClass of that name, or the lookup failed. The pod would be refused, or deleted and recreated forever. With spec.failurePolicy Ignore the field is left out and the rest of the policy is applied; with Fail the object is refused.",
    remedy:
      "Create the object, or correct the policy. Offline, add the Node, PriorityClass or RuntimeClass to the source directory. In a cluster, check that usher may get it.",
  },
  {
    code: "USHER-P21",
    title: "Injected criteria were restored",
    meaning:
      "The object was rolled back or replaced by one without the criteria that policies had injected. Everything is stored as sent, except that the injection was restored, because an update never removes it.",
    remedy:
      "If the policy should no longer apply, delete or change it and reapply: annotate the object with usher.dev/reapply, or use `usher placement reapply`.",
  },
  {
    code: "USHER-P22",
    title: "Reapply was not possible",
    meaning:
      "The annotation usher.dev/reapply requests it, but the object is a pod or a Job that accepts no new placement, or what policies want is unknown at the moment. Nothing was removed.",
    remedy:
      "Recreate the Job or pod: new objects get their placement. If something was unknown, fix that and reapply.",
  },
  {
    code: "USHER-P23",
    title: "The nodeSelector of a RuntimeClass conflicts with the pod",
    meaning:
      "The RuntimeClass that a policy sets has a nodeSelector, and the object has one of its keys with another value. The API server would refuse such a pod. spec.failurePolicy decides: Ignore leaves runtimeClassName out, Fail refuses the object.",
    remedy: "Remove the key from the object, or choose another RuntimeClass.",
  },
  {
    code: "USHER-P30",
    title: "Unmet requirements of a policy",
    meaning:
      "A policy with spec.enforcement selects this object, and after all mutations the object does not meet a requirement of the policy: most often because the object, or a policy of higher precedence, sets another value, and that part was skipped. With Refuse the object is refused, with Warn the client gets a warning. Preferences are not enforced.",
    remedy:
      "Remove the conflicting field from the object; the message names it. If the object is right, exclude it from the policy by selectors, targets, or enforcement None.",
  },
  {
    code: "USHER-P40",
    title: "Workloads drifted from a policy",
    meaning:
      "Changing a policy does not change stored workloads. Stale ones have what the policy wanted before. Orphaned ones have something of a policy that no longer selects them, or is deleted. Missing ones were created or applied while usher was down.",
    remedy:
      "`usher placement status -A` shows them with the fields, `usher placement reapply --policy NAME -A --dry-run` what would change. Without --dry-run it reapplies, a few at a time; changed templates roll out.",
  },
];
