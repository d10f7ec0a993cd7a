/**
 * The contract between the process and the page: every response of the JSON API and every server-sent event. Types only; the page loads
 * no code of the process.
 *
 *     GET  /api/overview                              Overview
 *     GET  /api/map?group=G&lens=L[&since=REVISION]   NodeMap
 *     GET  /api/nodes/NODE                            NodeDetail
 *     GET  /api/pods/NAMESPACE/POD                    PodDetail
 *     GET  /api/policies                              PolicyList
 *     GET  /api/tables/NAME                           Table
 *     GET  /api/manifest?kind=K&name=N[&namespace=NS] EditableManifest
 *     GET  /api/explain?kind=K&name=N[&namespace=NS]  Explanations
 *     POST /api/explain    ExplainRequest             Explanations
 *     POST /api/what-if    WhatIfRequest              WhatIf
 *     GET  /api/decisions                             Decisions
 *     GET  /api/search?q=TEXT                         SearchResults
 *     GET  /api/events                                server-sent events: ServerEvents
 *
 * A failed call has status 4xx or 5xx and the body ApiError. A POST needs `content-type: application/json`. All other paths without a dot
 * serve the page, so that every state has a URL: `/nodes?lens=policy`.
 */

import type { ObjectCount, Tone } from "../core/module/shown.ts";

/** A failed call. */
export interface ApiError {
  readonly error: {
    /** What is wrong and where. */
    readonly message: string;
    /** The next step. */
    readonly hint?: string;
    /** Of a manifest: every problem with its line. */
    readonly problems?: readonly LocatedProblem[];
  };
}

export interface ObjectRef {
  readonly kind: string;
  /** Empty for an object of the whole cluster. */
  readonly namespace: string;
  readonly name: string;
}

// ---------------------------------------------------------------------------------------------------------------- overview

/** The content of the page's frame, and the choices that it offers. */
export interface Overview {
  /** usher's version. */
  readonly version: string;
  readonly source: SourceState;
  /** How the cells of the map can be coloured. The first is the default. */
  readonly lenses: readonly LensInfo[];
  /** How nodes can be grouped. The first is the default. */
  readonly groupings: readonly GroupingInfo[];
  /** Views that modules declare, each a Table: Pod Security, Projects. */
  readonly tables: readonly TableInfo[];
  readonly counts: {
    readonly nodes: number;
    readonly pods: number;
    readonly namespaces: number;
    readonly policies: number;
    readonly problems: number;
  };
}

export interface SourceState {
  readonly live: boolean;
  /** `examples/cluster`, or the name of the kubeconfig's context. */
  readonly name: string;
  /** `waiting`: the first lists are being read. `stale`: the source can't be read now; the page shows the state of `since`. */
  readonly state: "waiting" | "ready" | "stale";
  /** RFC 3339: since when the state holds. */
  readonly since: string;
  /** Resources that could not be read, with the reason: `pods: forbidden: …`. The page is partial. */
  readonly partial: readonly string[];
  /** Steps with every change of what is shown. */
  readonly revision: number;
}

export interface LensInfo {
  readonly name: string;
  /** `Placed by policy` */
  readonly title: string;
  /** One sentence for the legend. */
  readonly summary: string;
}

export interface GroupingInfo {
  readonly name: string;
  /** `Pool` */
  readonly title: string;
}

export interface TableInfo {
  /** In the URL: `pod-security`. */
  readonly name: string;
  /** `Pod Security` */
  readonly title: string;
  readonly summary: string;
}

// --------------------------------------------------------------------------------------------------------------------- map

/** Nodes with their pods as counts by category. With `since` only nodes that changed after that revision. */
export interface NodeMap {
  readonly revision: number;
  readonly lens: string;
  readonly group: string;
  /** What a cell can be, in the order of the legend. An index never changes its meaning within a process. */
  readonly categories: readonly Category[];
  /** In their order on the map. */
  readonly groups: readonly MapGroup[];
  readonly nodes: readonly MapNode[];
  /** Pods without a node. */
  readonly pending: Cells;
  /** False: `nodes` has only those that changed since the revision that was asked for. */
  readonly whole: boolean;
  /** Names of nodes that were removed since then. */
  readonly gone: readonly string[];
}

export interface Category {
  /** Stable, for deep links: `ClusterPodSchedulingPolicy/etcd-pool`, `refused`. */
  readonly key: string;
  /** `etcd-pool` */
  readonly title: string;
  readonly tone: Tone;
  /** For categories without a judgement: 0, 1, 2 … names a colour of the palette; the page repeats the palette beyond its end. */
  readonly colour?: number;
  /** Cells of the whole map in it. */
  readonly count: number;
}

export interface MapGroup {
  readonly key: string;
  /** `pool etcd` */
  readonly title: string;
  /** Nodes in it. */
  readonly nodes: number;
  readonly pods: number;
}

export interface MapNode {
  readonly name: string;
  /** Index into `groups`. */
  readonly group: number;
  readonly cells: Cells;
  /** `control plane`, `not ready`, `cordoned`, `tainted`, `windows`; after a what-if also `new`, `gone`. */
  readonly tags: readonly string[];
}

/** Pairs of category index and count, in the order of categories: `[0, 12, 3, 1]` is 12 of category 0 and 1 of category 3. */
export type Cells = readonly number[];

// ------------------------------------------------------------------------------------------------------------ node and pod

export interface NodeDetail {
  readonly name: string;
  readonly tags: readonly string[];
  readonly groups: readonly { readonly grouping: string; readonly title: string }[];
  readonly labels: readonly NodeValue[];
  readonly taints: readonly NodeValue[];
  readonly allocatable: Readonly<Record<string, string>>;
  /** In the order of the cells for each lens that one sorts by: by name here. */
  readonly pods: readonly PodLine[];
  readonly revision: number;
}

export interface NodeValue {
  /** `pool=etcd`; of a taint `dedicated=etcd:NoSchedule`. */
  readonly text: string;
  /** The rule that set it. */
  readonly by?: PolicyLink;
  /** What the rule would still change: `to be removed`. */
  readonly pending?: string;
}

export interface PolicyLink {
  /** The id of a Policy; absent where it is the module's own. */
  readonly id?: string;
  readonly title: string;
}

export interface PodLine {
  readonly namespace: string;
  readonly name: string;
  /** `Deployment web`, or `""`. */
  readonly owner: string;
  readonly phase: string;
  /** One for each lens, in the order of Overview.lenses. */
  readonly values: readonly LensValue[];
}

/** What a lens says of one pod. */
export interface LensValue {
  /** Index into the categories of that lens. */
  readonly category: number;
  readonly key: string;
  readonly title: string;
  readonly tone: Tone;
  /** Why: one sentence. */
  readonly why: string;
  readonly policies: readonly PolicyLink[];
}

export interface PodDetail extends PodLine {
  readonly node: string;
  readonly serviceAccount: string;
  readonly labels: readonly string[];
  /** Values that usher has set, from its provenance record. */
  readonly set: readonly { readonly field: string; readonly value: string; readonly by: PolicyLink }[];
  readonly revision: number;
}

// ---------------------------------------------------------------------------------------------------------------- policies

export interface PolicyList {
  readonly policies: readonly ListedPolicy[];
  /** Files that could not be used at all. */
  readonly problems: readonly LocatedProblem[];
  readonly revision: number;
}

export interface ListedPolicy extends ObjectRef {
  /** In URLs and links: `ClusterPodSchedulingPolicy/etcd-pool`, `PodSchedulingPolicy/shop/fast-disks`. */
  readonly id: string;
  readonly module: string;
  /** Lines for people; each may be empty. */
  readonly selects: readonly string[];
  readonly changes: readonly string[];
  readonly refuses: readonly string[];
  readonly conflicts: readonly LinkedConflict[];
  readonly problems: readonly LocatedProblem[];
  /** What is behind it: `3 pods`, `2 nodes`, `5 users`. */
  readonly objects: readonly ObjectCount[];
  /** Where the map shows it; absent where no lens does. */
  readonly onMap?: { readonly lens: string; readonly category: string };
}

export interface LinkedConflict {
  /** The field: `nodeSelector topology.kubernetes.io/zone` */
  readonly about: string;
  readonly with: PolicyLink;
  /** Which of the two wins, and why: `zone-a has priority -10` */
  readonly winner: PolicyLink;
  readonly why: string;
}

export interface LocatedProblem {
  readonly severity: "error" | "warning";
  readonly message: string;
  readonly hint?: string;
  readonly file?: string;
  readonly line?: number;
  readonly column?: number;
  /** `ClusterPodSchedulingPolicy etcd-pool` */
  readonly object?: string;
}

// ---------------------------------------------------------------------------------------- tables: Pod Security and Projects

/** A view that a module declares: rows with cells, each row with details to open. */
export interface Table extends TableInfo {
  /** Figures above the rows. */
  readonly figures: readonly TableFigure[];
  readonly note?: string;
  readonly columns: readonly TableColumn[];
  readonly rows: readonly ShownRow[];
  /** Where there are no rows: why, and what to do. */
  readonly empty: string;
  readonly revision: number;
}

export interface TableFigure {
  readonly title: string;
  readonly value: string;
  readonly tone: Tone;
}

export interface TableColumn {
  readonly title: string;
  readonly align: "start" | "end";
  /** Rows can be grouped and filtered by its text: `Enforced`. */
  readonly groups?: true;
}

export interface ShownRow {
  readonly key: string;
  readonly tone: Tone;
  readonly cells: readonly TableCell[];
  /** Opened with the row. */
  readonly details: readonly TableDetail[];
}

export interface TableCell {
  readonly text: string;
  /** For sorting; absent: by text. */
  readonly value?: number;
  readonly tone?: Tone;
  /** Drawn as a bar: 4 of 5. */
  readonly meter?: { readonly value: number; readonly max: number };
}

export interface TableDetail {
  /** `Deployment shop/web` */
  readonly title: string;
  readonly tone: Tone;
  /** Opens Explain. */
  readonly object?: ObjectRef;
  /** `baseline: hostNetwork` */
  readonly lines: readonly string[];
  /** The remedy; shown as code if it starts with a space. */
  readonly fixes: readonly string[];
}

// ----------------------------------------------------------------------------------------------------------------- explain

export interface ExplainRequest {
  /** YAML or JSON, one or more documents. */
  readonly manifest: string;
  /** For objects without one. @default default */
  readonly namespace?: string;
}

/** The stored manifest of a policy, node, namespace or workload, for editing: without status, Secrets and values of environment variables. */
export interface EditableManifest {
  readonly object: ObjectRef;
  readonly yaml: string;
}

export interface Explanations {
  readonly explanations: readonly ObjectExplanation[];
}

export interface ObjectExplanation {
  readonly object: ObjectRef;
  /** `true`: stored. `false`: a pasted manifest. */
  readonly stored: boolean;
  /** `deny` also where every pod of a workload would be refused. */
  readonly verdict: "allow" | "patch" | "deny";
  /** One sentence: `usher changes it: 2 values by 2 policies.` */
  readonly summary: string;
  /** What each policy does if the object were created now, in the order in which modules run. */
  readonly steps: readonly TraceStep[];
  readonly violations: readonly {
    readonly message: string;
    readonly code: string;
    readonly by: PolicyLink;
    readonly ofPods: boolean;
  }[];
  readonly warnings: readonly string[];
  /** What the decision needed and could not be read. */
  readonly unknown: readonly string[];
  /** Why no policy was evaluated. */
  readonly untouched?: string;
  /** Values that usher has set on the stored object, and what they would be today. */
  readonly set: readonly {
    readonly field: string;
    readonly value: string;
    readonly by: PolicyLink;
    readonly today: string;
    readonly when?: string;
  }[];
  readonly diffs: readonly Diff[];
  /** Where its pods may run; absent where it has no pods, is refused, or no nodes are known. */
  readonly nodes?: Where;
  /** Usher's events about it. */
  readonly refusals: readonly {
    readonly when: string;
    readonly message: string;
    readonly policy?: string;
    readonly count?: number;
  }[];
  /** Of a stored pod: the node that it is on, and what each lens says. */
  readonly pod?: PodDetail;
  /** The command line that says the same; absent for a pasted manifest. */
  readonly command?: string;
}

export interface TraceStep {
  readonly module: string;
  readonly policy: PolicyLink;
  /** One rule of it. */
  readonly rule?: string;
  /** `failed`: whether it applies is unknown. */
  readonly result: "applies" | "partly" | "not" | "refuses" | "failed";
  readonly why: string;
  /** With a sign before each: `+ nodeSelector pool=etcd`, `= …` already set, `! …` skipped, `- …` removed. */
  readonly parts: readonly string[];
}

export interface Diff {
  /** `Before usher, and now` */
  readonly title: string;
  /** Unified: each with ` `, `+`, `-` or `@` first. */
  readonly lines: readonly string[];
}

export interface Where {
  /** `2/6 nodes are available: …` */
  readonly summary: string;
  readonly fits: number;
  readonly total: number;
  /** Nodes with the same answer; those that fit come first. */
  readonly groups: readonly {
    readonly verdict: "fits" | "fails" | "unknown";
    /** The scheduler's filter: `NodeAffinity`. Absent where the pod fits. */
    readonly filter?: string;
    readonly reason?: string;
    readonly count: number;
    /** At most 200. */
    readonly nodes: readonly string[];
  }[];
  readonly notes: readonly string[];
}

// ----------------------------------------------------------------------------------------------------------------- what if

export interface WhatIfRequest {
  /** Policies, nodes, namespaces and workloads that are added or replaced: YAML, several documents. May be empty. */
  readonly manifests: string;
  /** `node/worker-1`, `clusterpodschedulingpolicy/zone-a`, `deployment/shop/web` */
  readonly remove?: readonly string[];
  /** Nodes. */
  readonly cordon?: readonly string[];
  /** Sends new objects to the API server as a dry run. Only on a live cluster, and only if the person asks. @default false */
  readonly serverDryRun?: boolean;
  /** For the maps. @default the first of each */
  readonly group?: string;
  readonly lens?: string;
}

export interface WhatIf {
  readonly edits: readonly { readonly name: string; readonly what: string }[];
  /** `2 workloads are refused` … or `nothing changes`. */
  readonly summary: readonly string[];
  /** By the chosen lens. */
  readonly before: NodeMap;
  readonly after: NodeMap;
  /** Every pod where it is now, by what becomes of it: categories `stays`, `changed`, `moves`, `stranded`, `refused`, `admitted`. */
  readonly effects: NodeMap;
  /** The worst first. */
  readonly workloads: readonly WorkloadEffect[];
  /** Labels and taints of nodes that rules change, and users over a limit. */
  readonly others: readonly {
    readonly object: ObjectRef;
    readonly lines: readonly string[];
    readonly tone: Tone;
  }[];
  readonly pools: readonly {
    readonly pool: string;
    readonly effect: "empties" | "fills" | "changed";
    readonly nodes: { readonly before: number; readonly after: number };
    readonly workloads: { readonly before: number; readonly after: number };
  }[];
  /** What the API server says of new objects, where it was asked. */
  readonly serverDryRun: readonly {
    readonly name: string;
    readonly result: string;
    readonly lines: readonly string[];
  }[];
  readonly unknown: readonly string[];
  readonly partial: readonly string[];
  /** `usher what-if … --source examples/cluster <<'EOF' …`: says the same. */
  readonly command: string;
  readonly looked: { readonly workloads: number; readonly pods: number; readonly nodes: number };
}

export interface WorkloadEffect {
  readonly object: ObjectRef;
  readonly effect:
    | "refused"
    | "stranded"
    | "moves"
    | "admitted"
    | "still refused"
    | "changed"
    | "warned"
    | "new"
    | "gone"
    | "same";
  readonly pods: number;
  /** Changes that differ, violations and warnings that are new, each with its sign. */
  readonly lines: readonly string[];
  /** Nodes that it may run on. */
  readonly nodes?: {
    readonly before: number;
    readonly after: number;
    readonly gained: readonly string[];
    readonly lost: readonly { readonly node: string; readonly reason: string }[];
  };
  /** Nodes that its pods are on and would not be placed on again. */
  readonly leaves: readonly string[];
}

// -------------------------------------------------------------------------------------------------------------------- live

export interface Decisions {
  /** The latest first, at most 1,000. */
  readonly decisions: readonly LiveDecision[];
  /** Where they come from, or why there are none: `No server is running on these files: start one with npm start.` */
  readonly note: string;
}

export interface LiveDecision {
  /** Unique within a process. */
  readonly id: number;
  /** RFC 3339. */
  readonly time: string;
  /** Objects that are allowed as they are do not appear. */
  readonly verdict: "refused" | "changed" | "warned";
  readonly operation: string;
  readonly object: ObjectRef;
  /** Empty where it is not known. */
  readonly user: string;
  readonly policies: readonly PolicyLink[];
  /** What was changed, why it was refused. */
  readonly lines: readonly string[];
  /** Of an event that was seen several times. */
  readonly count: number;
}

// ------------------------------------------------------------------------------------------------------------------ search

export interface SearchResults {
  /** At most 50, the best first. */
  readonly results: readonly SearchResult[];
  readonly more: boolean;
}

export interface SearchResult {
  readonly what: "node" | "pod" | "workload" | "namespace" | "policy" | "user" | "view";
  readonly object: ObjectRef;
  /** Of a policy its id; of a view its path. */
  readonly id?: string;
  /** `on cp-0`, `pool etcd` */
  readonly note: string;
}

// ------------------------------------------------------------------------------------------------------ server-sent events

/** The data of each event, by its name. Events come at most 4 times a second, except decisions, which come in lists. */
export interface ServerEvents {
  /** At the start of a connection, and when the state of the source changes. */
  readonly source: SourceState;
  /** Something changed: the page asks again for what it shows, the map with `since`. */
  readonly changed: {
    readonly revision: number;
    /** Nodes, or pods on them. */
    readonly map: boolean;
    /** Policies, namespaces or workloads: policies, tables and explanations may differ. */
    readonly policies: boolean;
  };
  readonly decisions: readonly LiveDecision[];
}
