/** A request's statement about where a pod runs, or about a protected node itself. */
export interface Claim {
  /** The name that findings, audit annotations and metrics use. */
  readonly rule:
    | "assign"
    | "bind"
    | "pinned"
    | "exclusive"
    | "implied"
    | "retain"
    | "possible"
    | "reachable"
    | "node-labels"
    | "access";
  readonly code: string;
  /** Whether the sender of the request must be authorised; `option`: if the group has checkRequesterOnSelection. */
  readonly actor: "always" | "option" | "never";
  /** Whether the pod must be authorised. */
  readonly pod: boolean;
  /** False: only a warning, in any mode. */
  readonly refused: boolean;
  /** The pod has no node yet: refused only so that its owner learns of it early, unless the group's earlyRefusal is Warn. */
  readonly early: boolean;
  /** Between the subject and the nodes, in messages. */
  readonly says: string;
  /** Before the group, in warnings. */
  readonly warns: string;
  /** The user's remedy, without a full stop. */
  readonly fix: string;
}

const ABOUT_POD = { pod: true, refused: true, early: false } as const;
const SELECTION = { actor: "option", pod: true, refused: true, early: true } as const;
const ABOUT_ACTOR = { actor: "always", pod: false, refused: true, early: false } as const;

/** Constraints whose nodes are all protected. */
const EXCLUSIVE = {
  rule: "exclusive",
  says: "can only run on",
  warns: "runs only on",
  fix: "Remove the nodeSelector or node affinity that selects them",
} as const;

/** Every claim. The README says which webhook decides which. */
export const CLAIMS = {
  /** A pod with nodeName is created. The node is certain, and taints do not count. */
  assign: {
    ...ABOUT_POD,
    rule: "assign",
    code: "USHER-G01",
    actor: "always",
    says: "may not be assigned to",
    warns: "nodeName is in",
    fix: "Remove spec.nodeName",
  },
  /** A Binding is created. */
  bind: {
    ...ABOUT_POD,
    rule: "bind",
    code: "USHER-G02",
    actor: "always",
    says: "may not be bound to",
    warns: "target is in",
    fix: "Let the pod run on another node",
  },
  /** Every usable term of the required affinity names a node. */
  pinned: {
    ...SELECTION,
    rule: "pinned",
    code: "USHER-G03",
    says: "can only run on",
    warns: "pinned to",
    fix: "Remove the node's name from the required node affinity",
  },
  /** All nodes that the constraints select are protected, and the constraints name the group. */
  exclusive: { ...SELECTION, ...EXCLUSIVE, code: "USHER-G04" },
  /** The same as `exclusive`, by chance: the constraints do not name the group. An autoscaler may add a node that is not protected, so the pod is never refused. */
  incidental: { ...SELECTION, ...EXCLUSIVE, code: "USHER-G05", actor: "never", refused: false },
  /** No known node is selected, and the constraints require the group's labels. */
  implied: {
    ...SELECTION,
    rule: "implied",
    code: "USHER-G06",
    says: "requires labels of",
    warns: "requires",
    fix: "Remove the nodeSelector or node affinity that requires them",
  },
  /** Some of the nodes that would accept the pod are protected. */
  possible: {
    ...ABOUT_POD,
    rule: "possible",
    code: "USHER-G07",
    actor: "never",
    refused: false,
    says: "may be refused on",
    warns: "may reach",
    fix: "Exclude them by a required node affinity, or drop the toleration",
  },
  /** A pod on a protected node gets a toleration that keeps it there. */
  retain: {
    ...ABOUT_POD,
    rule: "retain",
    code: "USHER-G08",
    actor: "never",
    says: "may not be kept by a toleration on",
    warns: "stays on",
    fix: "Leave the tolerations as they are",
  },
  /** A scheduler could choose a protected node for the pod, and steering can't keep the pod off it. */
  reachable: {
    ...ABOUT_POD,
    rule: "reachable",
    code: "USHER-G13",
    actor: "never",
    says: "could be scheduled onto",
    warns: "could reach",
    fix: "Exclude them by a required node affinity that is not too large when the pod is created, or leave the toleration out",
  },
  /** A node leaves the group by its labels. */
  nodeLabels: {
    ...ABOUT_ACTOR,
    rule: "node-labels",
    code: "USHER-G09",
    says: "may not leave",
    warns: "leaves",
    fix: "Keep the labels",
  },
  /** A request reaches into a pod on a protected node. */
  access: {
    ...ABOUT_ACTOR,
    rule: "access",
    code: "USHER-G10",
    says: "may not be accessed on",
    warns: "access to",
    fix: "Use a pod on another node",
  },
} as const satisfies Record<string, Claim>;
