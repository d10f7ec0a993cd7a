import type { Code } from "../../core/module/module.ts";

export const CODES: readonly Code[] = [
  {
    code: "USHER-L01",
    title: "Two rules say something different for one key of a node",
    meaning:
      "Both rules mean the same node and set the same label, annotation or taint to different values. The one with the higher spec.priority wins, then the name that comes first alphabetically, then the namespace. If the winner goes, the other's value appears.",
    remedy:
      "Take the key out of one rule, narrow the patterns of one, or give the one that should win a higher spec.priority. `usher node-labels plan` shows what each node would get.",
  },
  {
    code: "USHER-L02",
    title: "A label follows right after the node has registered",
    meaning:
      "The API server's plugin NodeRestriction refuses a node that registers itself with this label: in the domains kubernetes.io and k8s.io a node may name only a few keys, and none in node-restriction.kubernetes.io. Usher sets it a moment later, and until then the startup taint keeps work away.",
    remedy:
      "Nothing need be done. Where the very first state of the node matters, as for a machine config pool, select by a label of a domain of your own, which the node has from birth.",
  },
  {
    code: "USHER-L03",
    title: "This needs an acknowledgement",
    meaning:
      "The label is one that the kubelet itself keeps right (hostname, os, arch, instance type, region, zone), or a whole domain of Kubernetes would be owned, so that labels which others rely on would be removed.",
    remedy:
      "If you mean it, annotate the object with usher.dev/acknowledge: followed by the key or the domain, several with commas between them.",
  },
];
