import type { Code } from "../../core/module/module.ts";

export const CODES: readonly Code[] = [
  {
    code: "USHER-O01",
    title: "A pod is for two operating systems",
    meaning:
      "spec.os.name, nodeSelector, required node affinity, RuntimeClass and the pod's label kubernetes.io/os do not agree on one OS. Wherever such a pod is scheduled to, the kubelet refuses it, or it is never scheduled.",
    remedy:
      "Keep one of them: spec.os.name with nodeSelector kubernetes.io/os of the same value is enough. os.contradictions says whether usher warns or refuses.",
  },
  {
    code: "USHER-O02",
    title: "The OS was not written",
    meaning:
      "os.write is on and the OS of the pod is known, but the pod has fields that the API server forbids for this OS, so writing spec.os would have it refused.",
    remedy: "Remove the field that the warning names, or the selector that made it a pod of that OS.",
  },
  {
    code: "USHER-O03",
    title: "No selector for the pod's OS",
    meaning:
      "The scheduler ignores spec.os. A pod that is bound to a node of another OS fails for good; a DaemonSet fails on every such node, again and again.",
    remedy:
      "Add nodeSelector kubernetes.io/os with the value of spec.os.name to the pod or its template, or set os.write: true, and usher adds it.",
  },
  {
    code: "USHER-O04",
    title: "The pod's node runs another OS",
    meaning: "A pod was about to be bound to, or created on, a node whose kubelet would refuse it.",
    remedy:
      "Add nodeSelector kubernetes.io/os with the value of spec.os.name to the pod or its template, so that the scheduler chooses another node. Where the message names the pod's label kubernetes.io/os, correct or remove that label: kubelets compare it, too.",
  },
  {
    code: "USHER-O05",
    title: "A template has fields that its OS forbids",
    meaning:
      "The API server does not validate the pod template of this kind, but it will refuse every pod that is made of it: the field belongs to another OS than spec.os.name.",
    remedy: "Remove the field that the warning names, or correct spec.os.name.",
  },
  {
    code: "USHER-O06",
    title: "The pod was not hardened",
    meaning:
      "os.harden names the namespace, but the pod has more than 500 containers. Each would get two fields, and other requests would wait meanwhile.",
    remedy:
      "Set the fields in the pod or its template: allowPrivilegeEscalation, capabilities, runAsNonRoot and seccompProfile of securityContext.",
  },
];
