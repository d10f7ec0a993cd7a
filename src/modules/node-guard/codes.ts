import type { Code } from "../../core/module/module.ts";

const AUTHORIZE =
  "If it belongs there, an administrator adds the sender to `assigners` and a service account of the pod's namespace to `workloads` of the group; `usher node-guard learn` proposes entries.";

/** Decisions of this module. */
export const CODES: readonly Code[] = [
  {
    code: "USHER-G01",
    title: "A pod may not be assigned to a protected node",
    meaning:
      "The pod was created with spec.nodeName of a node in a protected group, or of a node that is not known. The sender, the pod's namespace, or both are not authorised in that group.",
    remedy: `Remove spec.nodeName and let the scheduler choose. ${AUTHORIZE}`,
  },
  {
    code: "USHER-G02",
    title: "A pod may not be bound to a protected node",
    meaning:
      "A scheduler chose a node of a protected group, and the pod, the scheduler, or both are not authorised in that group. The scheduler tries again, and may choose the same node.",
    remedy: `Exclude the group's nodes by a required node affinity, which steering does by itself in Enable, or drop the toleration of their taint. ${AUTHORIZE}`,
  },
  {
    code: "USHER-G03",
    title: "A pod is pinned to protected nodes",
    meaning:
      "Every term of the pod's required node affinity names a node, and all these nodes are protected. The bind would be refused, so the pod is refused now.",
    remedy: `Remove the names. ${AUTHORIZE}`,
  },
  {
    code: "USHER-G04",
    title: "A pod can only run on protected nodes",
    meaning:
      "The pod's nodeSelector and required node affinity are about a protected group, and select no other node.",
    remedy: `Remove the part that selects the group. ${AUTHORIZE}`,
  },
  {
    code: "USHER-G05",
    title: "Only protected nodes fit the pod now",
    meaning:
      "The pod's constraints do not name a protected group, but all nodes that they select today are protected. It is admitted, because other nodes may join, and stays pending until then.",
    remedy: `Loosen the constraints, or add a node that fits. ${AUTHORIZE}`,
  },
  {
    code: "USHER-G06",
    title: "A pod requires the labels of a protected group",
    meaning: "No known node fits the pod, and any that does would belong to the protected group.",
    remedy: `Remove the labels from nodeSelector or node affinity. ${AUTHORIZE}`,
  },
  {
    code: "USHER-G07",
    title: "Pods of this template may be refused on some nodes",
    meaning:
      "Some of the nodes that would take the pods are protected. A scheduler that chooses one of them is refused and tries again.",
    remedy: `Exclude the nodes by a required node affinity, or drop the toleration of their taint; for a DaemonSet \`usher node-guard reapply\` does it. ${AUTHORIZE}`,
  },
  {
    code: "USHER-G08",
    title: "A toleration would keep a pod on a protected node",
    meaning:
      "The pod runs on a protected node without being authorised there, and the update makes it tolerate a NoExecute taint of that node, or for longer.",
    remedy: `Leave the tolerations as they are, or delete the pod. ${AUTHORIZE}`,
  },
  {
    code: "USHER-G09",
    title: "A node may not leave its protected group",
    meaning:
      "The change of labels would take the node out of a protected group, so that anything could run on it. The sender is not authorised in that group. Usher's own account never is.",
    remedy:
      "Keep the labels. To take a node out on purpose, do it as an authorised user, or grant an override first.",
  },
  {
    code: "USHER-G10",
    title: "A pod on a protected node may not be accessed",
    meaning:
      "The group has guardAccessOnProtectedNodes, and the sender of the exec, attach, portforward, proxy, resize or ephemeral container is not authorised in it.",
    remedy: "An administrator adds the sender to `assigners` of the group.",
  },
  {
    code: "USHER-G11",
    title: "A node or pod could not be read",
    meaning:
      "Whether the request is about a protected node depends on an object that the API server did not return in time. In Enable the request is refused, in Inform it is admitted.",
    remedy: "Try again. If it goes on, look at the API server's load and at usher's priority level.",
  },
  {
    code: "USHER-G12",
    title: "The object can't be judged",
    meaning: "The pod or Binding has a node of the wrong type. No API server sends such an object.",
    remedy: "Correct the object.",
  },
  {
    code: "USHER-G13",
    title: "A pod could not be steered",
    meaning:
      "A scheduler could choose a protected node for the pod, and the pod can't be kept off it any more: a pod that waits for a node takes no new node affinity; a required node affinity has too many terms, or says more than usher looks at. Nodes of the group would lose other pods to it before its bind is refused, so that the request is refused.",
    remedy: `Exclude the protected nodes by a required node affinity when the pod is created, use fewer terms, or leave out the toleration of their taint. ${AUTHORIZE}`,
  },
  {
    code: "USHER-G14",
    title: "A workload was steered off protected nodes",
    meaning:
      "Pods of the DaemonSet are not authorised in a protected group whose nodes would take them. Its template got a required node affinity, or lost a toleration, so that no pod is made for these nodes.",
    remedy: `Nothing, if the pods need not run there. ${AUTHORIZE} Then apply the DaemonSet again without the added affinity.`,
  },
];
