import type { Module } from "../../core/module/module.ts";
import type { Reconciler } from "../../core/module/reconciler.ts";
import { type Kind, kindResource } from "../../core/policy/kind.ts";
import type { View } from "../../core/view/view.ts";
import { NODE_READ } from "./criteria/selected-nodes.ts";
import { reconcileDriftScan } from "./drift/reconcile-drift.ts";
import { clusterPodSchedulingPolicy, podSchedulingPolicy } from "./kinds.ts";
import { workloadFigures } from "./metrics.ts";
import { initialPlacementState, type PlacementState } from "./reconciler-state.ts";
import { isAsked, WEBHOOKS_RESOURCE } from "./status/effect.ts";
import { keyOf } from "./status/node-counts.ts";
import { reconcileStatus } from "./status/reconcile-status.ts";

/** The status of one policy, two items for all workloads of the cluster, and one for all nodes. */
export type PlacementKey = StatusKey | { readonly kind: "drift-scan" | "drift-repair" | "nodes" };

export type StatusKey = {
  readonly kind: "status";
  readonly resource: string;
  readonly namespace: string;
  readonly name: string;
};

const KINDS: ReadonlyMap<string, Kind> = new Map(
  [clusterPodSchedulingPolicy, podSchedulingPolicy].map((kind) => [kindResource(kind), kind]),
);

function* statusKeys(view: View): Iterable<StatusKey> {
  for (const resource of KINDS.keys())
    for (const object of view.list(resource)) yield keyOf(resource, object);
}

/**
 * Scans stored workloads for drift, repairs it if configured, and keeps the status of policies current. `module` is a
 * function because the module is defined with its reconciler.
 */
export function placementReconciler(module: () => Module): Reconciler<PlacementKey, PlacementState> {
  return {
    initialState: initialPlacementState,
    initialKeys: function* (state, { view }) {
      state.changes++;
      yield { kind: "drift-scan" };
      state.asked = isAsked(view);
      yield* statusKeys(view);
    },
    // Only policies trigger a scan: namespaces are created and deleted all day.
    keys: ({ resource, namespace, name, object }, state, { view }) => {
      if (resource === NODE_READ.resource) {
        state.nodes.nodesChanged();
        return [{ kind: "nodes" }];
      }
      if (resource === WEBHOOKS_RESOURCE) {
        const asked = isAsked(view);
        if (asked === state.asked) return [];
        state.asked = asked;
        return [...statusKeys(view)];
      }
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
        case "nodes": {
          const { outdated, ...rest } = state.nodes.step(
            KINDS.keys(),
            context.view,
            context.elapsed ?? context.now,
          );
          return { writes: [], enqueue: outdated, ...rest };
        }
        case "status": {
          const kind = KINDS.get(key.resource);
          return kind === undefined ? { writes: [] } : reconcileStatus(key, kind, state, context);
        }
      }
    },
    figures: ({ counts }) => workloadFigures(counts?.sums() ?? {}),
  };
}
