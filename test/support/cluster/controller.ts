// For tests: a controller with the test's own reconciler, its writes and its log.
import { setImmediate as step } from "node:timers/promises";
import { Controller, type ControllerOptions } from "../../../src/cluster/controller/controller.ts";
import type { PlannedWriteResult } from "../../../src/cluster/controller/planned-writes.ts";
import type { JsonObject } from "../../../src/core/json.ts";
import { SILENT } from "../../../src/core/log.ts";
import { defineModule, type Module } from "../../../src/core/module/module.ts";
import { defineReconciler, type PlannedWrite, type Reconciler } from "../../../src/core/module/reconciler.ts";
import { Store } from "../../../src/core/view/store.ts";

export function applying(name: string): PlannedWrite {
  const apply = { apiVersion: "v1", kind: "ConfigMap", metadata: { name, namespace: "usher" } };
  return { apply, resourceVersion: undefined };
}

export function moduleWith(reconciler: Reconciler): Module {
  return defineModule({
    name: "seating",
    summary: "for tests",
    kinds: [
      {
        group: "usher.dev",
        kind: "Seat",
        plural: "seats",
        singular: "seat",
        scope: "Cluster",
        standing: "resource",
        summary: "for tests",
        versions: [],
        prepare: () => ({ policy: undefined, problems: [] }),
      },
    ],
    reads: [{ resource: "nodes", group: "", version: "v1", kind: "Node", scope: "Cluster", keep: [] }],
    hooks: () => [],
    assemble: () => ({}),
    reconciler,
  });
}

export function named(name: string): JsonObject {
  return { metadata: { name } };
}

/** The keys of test reconcilers. */
export type SeatKey = { readonly kind: "seat"; readonly name: string };

export function seat(name: string): SeatKey {
  return { kind: "seat", name };
}

/** A reconciler that applies a ConfigMap for each object; the test can replace parts of it. */
export function controllerWith(
  reconciler: Partial<Reconciler<SeatKey, unknown>>,
  options: Partial<ControllerOptions> = {},
) {
  const view = new Store(new Map());
  const written: PlannedWrite[] = [];
  const logged: string[] = [];
  const write = options.write ?? (async (): Promise<PlannedWriteResult> => "done");
  const controller = new Controller({
    modules: [
      moduleWith(
        defineReconciler<SeatKey, unknown>({
          initialState: () => undefined,
          keys: ({ name }) => [seat(name)],
          reconcile: ({ name }) => ({ writes: [applying(name)] }),
          ...reconciler,
        }),
      ),
    ],
    view: () => view,
    fetch: async (needs) => needs.map(() => ({ absent: "NotFound" })),
    leading: () => true,
    log: { ...SILENT, warn: (facts, message) => void logged.push(`${message} ${JSON.stringify(facts)}`) },
    queue: { backoff: { firstMs: 1, longestMs: 2, forgetMs: Number.POSITIVE_INFINITY } },
    ...options,
    write: async (one) => {
      written.push(one);
      return write(one);
    },
  });
  const changed = (...names: readonly string[]) => {
    const changes = names.map((name) => ({ resource: "nodes", namespace: "", name, object: named(name) }));
    controller.changed(view.apply(changes));
  };
  return { controller, written, logged, changed, view };
}

export async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await step();
}

export const namesOf = (written: readonly PlannedWrite[]) =>
  written.map((write) => ("apply" in write ? (write.apply["metadata"] as JsonObject)["name"] : undefined));
