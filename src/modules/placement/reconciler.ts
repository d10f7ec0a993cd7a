import { nameOf, namespaceOf } from "../../core/kubernetes/object.ts";
import type { Module } from "../../core/module/module.ts";
import type { Reconciler } from "../../core/module/reconciler.ts";
import { type Kind, kindResource } from "../../core/policy/kind.ts";
import { type DriftState, initialDriftState } from "./drift/drift-state.ts";
import { reconcileDriftScan } from "./drift/reconcile-drift.ts";
import { clusterPodSchedulingPolicy, podSchedulingPolicy } from "./kinds.ts";
import { workloadFigures } from "./metrics.ts";
import { reconcileStatus } from "./status/reconcile-status.ts";

/** The status of one policy, and two items for all workloads of the cluster. */
export type PlacementKey = StatusKey | { readonly kind: "drift-scan" } | { readonly kind: "drift-repair" };

export type StatusKey = {
  readonly kind: "status";
  readonly resource: string;
  readonly namespace: string;
  readonly name: string;
};

const KINDS: ReadonlyMap<string, Kind> = new Map(
  [clusterPodSchedulingPolicy, podSchedulingPolicy].map((kind) => [kindResource(kind), kind]),
);

/**
 * Scans stored workloads for drift, repairs it where the configuration allows, and keeps the status of policies current. `module` is a
 * function because the module is defined with its reconciler.
 */
export function placementReconciler(module: () => Module): Reconciler<PlacementKey, DriftState> {
  return {
    initialState: initialDriftState,
    initialKeys: function* (state, { view }) {
      state.changes++;
      yield { kind: "drift-scan" };
      for (const resource of KINDS.keys())
        for (const object of view.list(resource))
          yield { kind: "status", resource, namespace: namespaceOf(object), name: nameOf(object) };
    },
    // Only policies make a scan due: namespaces are created and deleted all day.
    keys: ({ resource, namespace, name, object }, state) => {
      if (!KINDS.has(resource)) return [];
      state.changes++;
      const scan: PlacementKey = { kind: "drift-scan" };
      return object === undefined ? [scan] : [{ kind: "status", resource, namespace, name }, scan];
    },
    tallyKeys: ({ resource, namespace, name }) => [{ kind: "status", resource, namespace, name }],
    reconcile: (key, state, context) => {
      switch (key.kind) {
        case "drift-scan":
          return reconcileDriftScan(module(), state, context);
        case "drift-repair":
          return state.repair.reconcile(module(), context);
        case "status": {
          const kind = KINDS.get(key.resource);
          return kind === undefined ? { writes: [] } : reconcileStatus(key, kind, state.counts, context);
        }
      }
    },
    figures: ({ counts }) => workloadFigures(counts?.sums() ?? {}),
  };
}
