/** What a request says about where a pod runs, as far as it can be about protected nodes. */
export interface Claim {
  /** C1 to C7, as in the guide. */
  readonly id: "C1" | "C2" | "C3" | "C4" | "C4b" | "C5" | "C6" | "C7" | "C8";
  /** The rule that a violation names. */
  readonly rule: "assign" | "bind" | "pinned" | "exclusive" | "implied" | "retain" | "possible" | "reachable";
  /** Whether the sender of the request must be authorised too. */
  readonly actor: "always" | "option" | "never";
  /** Whether it can be refused at all. */
  readonly refused: boolean;
  readonly code: string;
}

/** The rules of claims, in the order in which a request is looked at. */
export const CLAIMS = {
  /** A pod with nodeName is created: the node is known for sure, and taints do not count. */
  assign: { id: "C1", rule: "assign", actor: "always", refused: true, code: "USHER-G01" },
  /** A Binding is created. */
  bind: { id: "C2", rule: "bind", actor: "always", refused: true, code: "USHER-G02" },
  /** Every usable term of the required affinity names a node. */
  pinned: { id: "C3", rule: "pinned", actor: "option", refused: true, code: "USHER-G03" },
  /** All nodes that the constraints select are protected, and the constraints name the group. */
  exclusive: { id: "C4", rule: "exclusive", actor: "option", refused: true, code: "USHER-G04" },
  /** The same by chance: an autoscaler may add a node that is not protected, so it is never refused. */
  incidental: { id: "C4b", rule: "exclusive", actor: "never", refused: false, code: "USHER-G05" },
  /** No known node is selected, and the constraints require the group's labels. */
  implied: { id: "C5", rule: "implied", actor: "option", refused: true, code: "USHER-G06" },
  /** Some of the nodes that would take the pod are protected. */
  possible: { id: "C6", rule: "possible", actor: "never", refused: false, code: "USHER-G07" },
  /** A pod on a protected node gets a toleration that keeps it there. */
  retain: { id: "C7", rule: "retain", actor: "never", refused: true, code: "USHER-G08" },
  /** A scheduler could choose a protected node for the pod, and steering can't keep the pod off it. */
  reachable: { id: "C8", rule: "reachable", actor: "never", refused: true, code: "USHER-G13" },
} as const satisfies Record<string, Claim>;
