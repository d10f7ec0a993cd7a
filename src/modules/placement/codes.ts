import type { Code } from "../../core/module/module.ts";

export const CODES: readonly Code[] = [
  {
    code: "USHER-P01",
    title: "Conflicting values for a nodeSelector key",
    meaning:
      "A policy wants a value for a nodeSelector key, and the object, or a policy of higher precedence, has set another. That value is kept; only this key is skipped, the rest of the policy is applied.",
    remedy:
      "If the policy should win, remove the key from the object. Between two policies, give the one that should win a higher spec.priority.",
  },
  {
    code: "USHER-P02",
    title: "Can't determine whether a policy selects the object",
    meaning:
      "The policy selects namespaces by labels, and the labels of this object's namespace are unknown: the namespace does not exist yet, is not in the files, or could not be read in time.",
    remedy:
      "Offline, add the Namespace to the source directory. In a cluster, check that the namespace exists and usher can read it. spec.failurePolicy of the policy decides whether such objects are admitted (Ignore) or refused (Fail).",
  },
  {
    code: "USHER-P03",
    title: "A policy that may select the object is invalid",
    meaning:
      "Part of the policy can't be read, and its readable part selects this object. spec.failurePolicy of that policy decides: Ignore admits the object without it, Fail refuses the object. Other policies are not affected.",
    remedy: "Correct the policy; `usher review FILE --source DIR` names each invalid field.",
  },
  {
    code: "USHER-P10",
    title: "Conflicting values for a field",
    meaning:
      "A policy wants a value for schedulerName, nodeName, priorityClassName or runtimeClassName, and the object, or a policy of higher precedence, has set another. That value is kept; only this field is skipped. `default-scheduler` counts as unset unless the applied manifest names it.",
    remedy:
      "If the policy should win, remove the field from the object. Between two policies, give the one that should win a higher spec.priority. With spec.onConflict: Refuse the policy refuses such objects instead.",
  },
  {
    code: "USHER-P11",
    title: "No node can match both the policy and the object",
    meaning:
      "The policy's nodeSelector or required node affinity contradicts what the object, or a policy of higher precedence, requires, whatever nodes exist. The existing value is kept; this part of the policy is skipped, the rest is applied.",
    remedy:
      "Compare nodeSelector and required node affinity of both sides: one label would need two values, or be present and absent. Change one of them.",
  },
  {
    code: "USHER-P12",
    title: "Required node affinity, a list, or the work for one object is too large",
    meaning:
      "Terms are alternatives, so each term of the object is combined with each of the policy: their numbers multiply. Above 128 terms or 4,096 requirements the policy's required node affinity is skipped; with spec.failurePolicy: Fail the object is refused. The same holds for tolerations and other lists above 512 elements, and for policies beyond the work budget for one object, in the order in which they apply. Cluster policies and namespaced ones have a budget each. Where a policy enforces, a requirement that is too large to compare counts as unmet.",
    remedy:
      "Use fewer policies for one object, with fewer terms and elements: several values of one label fit into one requirement with the operator In, and what must always hold into spec.nodeSelector.",
  },
  {
    code: "USHER-P13",
    title: "Field is immutable on this object",
    meaning:
      "The API server does not let every field change on an existing object: the template of a Job only while the Job is suspended, and then not all of it; a pod only while it has scheduling gates, and then it can only gain. The field is skipped.",
    remedy: "Recreate the object if it should have the field; a new object can have all of them.",
  },
  {
    code: "USHER-P14",
    title: "Conflicting list elements",
    meaning:
      "The policy wants a toleration that the object has with other seconds, or a topology spread constraint that the object has for the same topologyKey and whenUnsatisfiable with other settings. A pod can have one of them: that of the object, or of the policy of higher precedence, is kept.",
    remedy: "Remove it from the object, or make both equal. Between two policies, set spec.priority.",
  },
  {
    code: "USHER-P15",
    title: "No object of this kind can have the field",
    meaning:
      "The API server refuses a pod with both a nodeName and scheduling gates, so the second one is skipped. A DaemonSet runs a pod on each of many nodes, so it gets no nodeName. Recreating the object changes nothing.",
    remedy:
      "Use either nodeName or schedulingGates; to place a gated pod, use spec.nodeSelector or affinity. For a DaemonSet, choose nodes by spec.nodeSelector or affinity, or exempt its pods by the policy's selectors.",
  },
  {
    code: "USHER-P20",
    title: "Referenced object not found",
    meaning:
      "A policy sets a nodeName, priorityClassName or runtimeClassName, and there is no such Node, PriorityClass or RuntimeClass, or it could not be read. With the field the pod would be refused, or deleted and recreated forever. With spec.failurePolicy Ignore the field is skipped and the rest of the policy is applied; with Fail the object is refused.",
    remedy:
      "Create the referenced object, or correct the policy. Offline, add the Node, PriorityClass or RuntimeClass to the source directory. In a cluster, check that usher may get it.",
  },
  {
    code: "USHER-P21",
    title: "Injections were restored",
    meaning:
      "The object was rolled back or replaced, and the new version does not have what policies had added to the stored one. An update never removes an injection, so it was restored; everything else is as it was sent.",
    remedy:
      "If the policy should no longer apply, delete or change it and request a reapply: annotate the object with usher.dev/reapply, or use `usher placement reapply`.",
  },
  {
    code: "USHER-P22",
    title: "Reapply skipped",
    meaning:
      "The annotation usher.dev/reapply requested it, and it can't be done: a pod without scheduling gates or a Job that is not suspended is immutable, or what policies want can't be determined now. Nothing was removed.",
    remedy:
      "Jobs and pods are placed when they are created: recreate them. If something could not be determined, fix that and request it again.",
  },
  {
    code: "USHER-P23",
    title: "RuntimeClass conflicts with the pod's nodeSelector",
    meaning:
      "The RuntimeClass that a policy names has a nodeSelector, and the object has one of its keys with another value. The API server would refuse the pod. With spec.failurePolicy Ignore runtimeClassName is skipped, with Fail the object is refused.",
    remedy: "Remove the key from the object, or choose another RuntimeClass.",
  },
  {
    code: "USHER-P24",
    title: "The namespace has no value for the policy",
    meaning:
      "The policy takes values from a label or an annotation of the object's namespace (spec.fromNamespace), and this namespace does not have it, or its value is not one that a node label can have. The policy is skipped in the namespace, and counted in its status.",
    remedy:
      "Give the namespace the label or annotation that the message names, or narrow spec.namespaceSelector to the namespaces that have it.",
  },
  {
    code: "USHER-P25",
    title: "A policy places part of a PodGroup",
    meaning:
      "The pod belongs to a PodGroup (spec.schedulingGroup), whose pods are scheduled together or not at all, and a policy that selects pods by labels has placed it. Pods of the group without these labels are not placed. If both can't run as the group needs it, such as in one rack, the whole group stays pending. The pod is placed and admitted.",
    remedy:
      "Give all pods of the group the labels that the policy selects, or let the policy select the namespace alone: it then places every pod of the group.",
  },
  {
    code: "USHER-P30",
    title: "Object does not meet the requirements of a policy",
    meaning:
      "A policy with spec.enforcement selects this object, and after all changes the object does not meet one of its requirements: most often because the object, or a policy of higher precedence, has another value, and that part was skipped. Refuse refuses the object, Warn returns a warning. Preferences are not enforced.",
    remedy:
      "Remove the conflicting value from the object; the message names the field. If an update brought a workload under the policy by a label, annotate it with usher.dev/reapply in the same update, so that the policy is applied. If the object is right, exempt it in the policy: by its selectors, its targets, or enforcement None. A controller that creates objects for an owner, such as Argo Rollouts, can be trusted: modules.placement.trustedControllers in the configuration.",
  },
  {
    code: "USHER-P31",
    title: "New pods of a workload will be refused",
    meaning:
      "A policy with spec.enforcement Refuse is newer than this workload, or was changed since, and the workload's pod template does not meet one of its requirements. The workload itself is not refused for what it had before, but its next pods will be: when it is scaled, rolled out, or a node is drained.",
    remedy:
      "Change the pod template; the message names the field. If nothing conflicts, annotate the workload with usher.dev/reapply, which adds what the policy wants. `usher placement status -A` lists such workloads as missing.",
  },
  {
    code: "USHER-P40",
    title: "Workloads differ from what a policy wants",
    meaning:
      "Stored workloads do not change with a policy. Some are stale: they have what the policy wanted before. Some are orphaned: they have something of a policy that no longer selects them, or was deleted. Some are missing it: they were created, or applied again, while usher was unavailable.",
    remedy:
      "`usher placement status -A` lists them with the fields, `usher placement reapply --policy NAME -A --dry-run` shows what would change. Without --dry-run it renews them, a few at a time; changed templates roll out.",
  },
];
