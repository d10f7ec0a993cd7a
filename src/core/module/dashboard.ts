import type { JsonObject } from "../json.ts";
import type { Assembly, StandingPolicy } from "./assembly.ts";
import type { ObjectCount, Tone } from "./shown.ts";

/**
 * What a module contributes to the dashboard, as data and pure functions. The dashboard draws whatever modules declare and names none of
 * them. Its assembly has nodes, namespaces, pods and every kind of workload in its view, so that no function here needs a fact.
 */
export interface DashboardParts {
  /** Ways to colour the pods of the map. @default none */
  readonly lenses?: readonly Lens[];
  /** Ways to group the nodes of the map. @default none */
  readonly groupings?: readonly Grouping[];
  /** What one of its policies means, for people. @default only its name, kind and problems */
  readonly summarize?: (assembly: Assembly, now: number) => (policy: StandingPolicy) => PolicySummary;
  /** Views of its own. @default none */
  readonly tables?: readonly DashboardTable[];
}

/** A question that has an answer for every pod. */
export interface Lens {
  /** In URLs. */
  readonly name: string;
  /** `Placed by policy` */
  readonly title: string;
  /** One sentence for the legend. */
  readonly summary: string;
  /** Called again after a change of policies, namespaces, nodes or workloads. */
  readonly prepare: (assembly: Assembly, now: number) => PreparedLens;
}

export interface PreparedLens {
  /** Answers for a pod on its node; `undefined` if it has no answer, or the node is unknown. */
  readonly of: (pod: JsonObject, node: JsonObject | undefined) => LensAnswer;
  /** The parts of a node that the answer depends on, as text: pods of one template on nodes with the same text get one answer. @default nothing */
  readonly nodeKey?: (node: JsonObject) => string;
}

export interface LensAnswer {
  /** Pods with the same key have the same colour: `refused`, or the key of a policy. */
  readonly key: string;
  readonly title: string;
  readonly tone: Tone;
  /** One sentence. */
  readonly why: string;
  /** Keys of the policies that it is due to: `ClusterPodSchedulingPolicy/etcd-pool`. */
  readonly policies: readonly string[];
}

/** A way to group nodes. */
export interface Grouping {
  readonly name: string;
  /** `Guarded group` */
  readonly title: string;
  readonly prepare: (assembly: Assembly, now: number) => (node: JsonObject) => NodeGroup;
}

export interface NodeGroup {
  readonly key: string;
  readonly title: string;
}

/** A policy in sentences; each list may be empty. */
export interface PolicySummary {
  readonly selects: readonly string[];
  readonly changes: readonly string[];
  readonly refuses: readonly string[];
  readonly conflicts?: readonly PolicyConflict[];
  /** The objects that it affects, beside the pods for which lenses name it. */
  readonly objects?: readonly ObjectCount[];
}

/** Two policies that want different things of the same objects. */
export interface PolicyConflict {
  /** `nodeSelector topology.kubernetes.io/zone: a here, b there` */
  readonly about: string;
  /** Keys of policies. */
  readonly with: string;
  readonly winner: string;
  /** Why that one wins. */
  readonly why: string;
}

/** A view of a module's own: rows, each with details to open. */
export interface DashboardTable {
  /** In URLs. */
  readonly name: string;
  readonly title: string;
  readonly summary: string;
  readonly columns: readonly {
    readonly title: string;
    readonly align: "start" | "end";
    readonly groups?: true;
  }[];
  /** Where there are no rows: why, and what to do. */
  readonly empty: string;
  /** `remember` keeps a value for an object until the object changes: a large cluster is not judged again for each change of it. */
  readonly rows: (assembly: Assembly, now: number, remember: Remember) => TableContent;
}

export type Remember = <Value>(object: JsonObject, make: () => Value) => Value;

export interface TableContent {
  readonly figures: readonly { readonly title: string; readonly value: string; readonly tone: Tone }[];
  readonly rows: readonly TableRow[];
  /** A sentence of what the reader has to know first: `No user is limited` */
  readonly note?: string;
}

export interface TableRow {
  readonly key: string;
  readonly tone: Tone;
  readonly cells: readonly {
    readonly text: string;
    /** For sorting. @default by text */
    readonly value?: number;
    readonly tone?: Tone;
    /** Drawn as a bar. */
    readonly meter?: { readonly value: number; readonly max: number };
  }[];
  readonly details: readonly {
    readonly title: string;
    readonly tone: Tone;
    readonly object?: { readonly kind: string; readonly namespace: string; readonly name: string };
    readonly lines: readonly string[];
    readonly fixes: readonly string[];
  }[];
}
