import type { Code } from "../../core/module/module.ts";

export const CODES: readonly Code[] = [
  {
    code: "USHER-P01",
    title: "Two say something different for one nodeSelector key",
    meaning:
      "A policy wants a nodeSelector key to have a value, and the object, or a policy that goes before, has set it to another. What was there first stays; only that key is skipped, the rest of the policy is applied.",
    remedy:
      "If the policy should win, take the key out of the object. Between two policies, give the one that should win a higher spec.priority.",
  },
  {
    code: "USHER-P02",
    title: "It can't be known whether a policy wants this object",
    meaning:
      "The policy selects namespaces by their labels, and the labels of this object's namespace are not known: the namespace does not exist yet, is not in the files, or could not be read in time.",
    remedy:
      "Offline, add the Namespace to the source directory. In a cluster, see whether the namespace exists and usher can read it. spec.failurePolicy of the policy says whether such objects pass (Ignore) or are refused (Fail).",
  },
  {
    code: "USHER-P03",
    title: "A policy that may want this object is not valid",
    meaning:
      "The policy has a part that can't be read, and its readable part selects this object. What happens follows spec.failurePolicy of that policy: Ignore lets the object pass without it, Fail refuses it. No other policy is touched.",
    remedy: "Correct the policy; `usher review FILE --source DIR` names each field that is wrong.",
  },
  {
    code: "USHER-P10",
    title: "Two say something different for one field",
    meaning:
      "A policy wants schedulerName, nodeName, priorityClassName or runtimeClassName to have a value, and the object, or a policy that goes before, has set it to another. What was there first stays; only that field is skipped. `default-scheduler` counts as nobody's unless the applied manifest names it.",
    remedy:
      "If the policy should win, take the field out of the object. Between two policies, give the one that should win a higher spec.priority. With spec.onConflict: Refuse the policy refuses such objects instead.",
  },
  {
    code: "USHER-P11",
    title: "No node could ever meet what the policy and the object require",
    meaning:
      "The policy's nodeSelector or required node affinity and what the object, or a policy that goes before, requires contradict each other, whatever nodes there are. What was there first stays; the policy's part is skipped, the rest of it is applied.",
    remedy:
      "Compare nodeSelector and required node affinity of both sides: one label would need two values, or be there and not be there. Change one of them.",
  },
  {
    code: "USHER-P12",
    title: "The required node affinity, a list, or all policies together would become too large",
    meaning:
      "Terms are alternatives, so each term of the object is combined with each of the policy: their numbers multiply. Above 64 terms or 4,096 requirements the policy's required node affinity is left out; with spec.failurePolicy: Fail the object is refused. So it is with tolerations and other lists above 512 elements. And for one object usher does only so much work, so that nobody else waits: what policies want beyond that, in the order in which they apply, is left out in the same way. Policies of the cluster and those of the namespace have a share each. Where a policy enforces, what is too large to be compared counts as lacking.",
    remedy:
      "Use fewer policies for one object, and fewer terms and elements: several values of one label fit into one requirement with the operator In, and what must hold in any case into spec.nodeSelector.",
  },
  {
    code: "USHER-P13",
    title: "The API server takes this field here no more",
    meaning:
      "Some fields can't change once an object exists: a Job's template only while the Job is suspended, and then not all of it; a pod only while it waits at a scheduling gate, and then it only takes more. What can't be written is left out.",
    remedy: "Make the object anew if it should have the field; from the start it can have all of them.",
  },
  {
    code: "USHER-P14",
    title: "A pod can have only one of these, and has another",
    meaning:
      "The policy wants a toleration that the object has for another time, or a topology spread constraint that the object has by the same key in other words. The object's own stays, or that of the policy that goes before.",
    remedy: "Take it out of the object, or make both alike. Between two policies, set spec.priority.",
  },
  {
    code: "USHER-P15",
    title: "A node and a scheduling gate do not go together",
    meaning:
      "The API server refuses a pod that has both a nodeName and scheduling gates, so what came second is left out.",
    remedy: "Ask for one of them. To bind a gated pod to a node, use spec.nodeSelector or affinity.",
  },
  {
    code: "USHER-P20",
    title: "What a policy names is not there",
    meaning:
      "A policy gives an object a nodeName, a priorityClassName or a runtimeClassName, and there is no Node, PriorityClass or RuntimeClass of that name, or it could not be asked whether there is. With it the pod would be refused, or deleted and made again for ever. With spec.failurePolicy Ignore that field is left out and the rest of the policy is applied; with Fail the object is refused.",
    remedy:
      "Create what is named, or correct the policy. Offline, add the Node, PriorityClass or RuntimeClass to the source directory. In a cluster, see whether usher may get it.",
  },
  {
    code: "USHER-P21",
    title: "What policies had put there was put back",
    meaning:
      "The object was rolled back or replaced, and the new one lacks what policies had put into the stored one. All is as it was sent, except that this was put back, because an update never takes an injection out.",
    remedy:
      "If the policy should no longer apply, delete or change it and ask for a reapply: annotate the object with usher.dev/reapply, or use `usher placement reapply`.",
  },
  {
    code: "USHER-P22",
    title: "An object was not placed anew",
    meaning:
      "The annotation usher.dev/reapply asked for it, and it can't be done: a pod on its way or a Job that is not suspended takes no new placement, or what policies want can't be known now. Nothing was taken out.",
    remedy:
      "A Job or a pod gets its placement when it is made: make it again. If something could not be known, mend that and ask again.",
  },
  {
    code: "USHER-P23",
    title: "A RuntimeClass wants another node than the pod",
    meaning:
      "The RuntimeClass that a policy names has a nodeSelector of its own, and the object has one of its keys with another value. The API server would refuse such a pod. What happens follows spec.failurePolicy: Ignore leaves runtimeClassName out, Fail refuses the object.",
    remedy: "Take the key out of the object, or choose another RuntimeClass.",
  },
  {
    code: "USHER-P30",
    title: "An object lacks what a policy demands",
    meaning:
      "A policy with spec.enforcement selects this object, and after all changes the object still lacks something that the policy demands: most often because the object itself, or a policy that goes before, says otherwise, and that part was skipped. With Refuse the object is refused, with Warn the client is told. Preferences are no demands.",
    remedy:
      "Take what stands against the policy out of the object; the message names the field. If the object is right, the policy must leave it out: by its selectors, its targets, or enforcement None.",
  },
  {
    code: "USHER-P40",
    title: "Workloads do not carry what a policy wants",
    meaning:
      "Stored workloads are not changed when a policy is. Some are stale: they carry what the policy wanted before. Some are orphaned: they carry something of a policy that no longer wants them, or is gone. Some are missing: they came in, or were applied again, while usher was away.",
    remedy:
      "`usher placement status -A` shows them with the fields, `usher placement reapply --policy NAME -A --dry-run` what would change. Without --dry-run it renews them, a few at a time; changed templates roll out.",
  },
];
