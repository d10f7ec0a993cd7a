import type { Code } from "../../core/module/module.ts";

export const CODES: readonly Code[] = [
  {
    code: "USHER-L01",
    title: "Two rules set different values for one key of a node",
    meaning:
      "Both rules match the same node and set the same label, annotation or taint to different values. The rule with the higher spec.priority wins, then the name that comes first alphabetically, then the namespace. If the winner is deleted, the value of the other rule applies.",
    remedy:
      "Remove the key from one rule, narrow the patterns of one, or give the rule that should win a higher spec.priority. `usher node-labels plan` shows what each node would get.",
  },
  {
    code: "USHER-L02",
    title: "A label or taint is set right after the node was created",
    meaning:
      "The admission plugin NodeRestriction refuses a node that registers itself with this label: in the domains kubernetes.io and k8s.io a node may set only a few keys, and none in node-restriction.kubernetes.io. A taint is set at creation once the leader has recorded it in the ConfigMap usher-node-labels, about a second after its rule was written. Usher sets the label or taint right after creation; until then the startup taint keeps pods off the node.",
    remedy:
      "No action is needed. If taints are always late, see whether a replica leads, and whether its log says that the ConfigMap can't be written. Where the very first state of the node matters, as for a machine config pool, select by a label in a domain of your own, which the node has from its creation on.",
  },
  {
    code: "USHER-L03",
    title: "The key or domain needs an acknowledgement",
    meaning:
      "The label is managed by the kubelet itself (hostname, os, arch, instance type, region, zone), or a whole domain of Kubernetes would be owned, so that labels on which other software relies would be removed.",
    remedy:
      "To confirm, annotate the object with usher.dev/acknowledge: and the key or domain; separate several with commas.",
  },
];
