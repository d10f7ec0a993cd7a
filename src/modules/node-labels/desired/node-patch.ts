import type { PatchOperation } from "../../../core/decision/patch.ts";
import type { Installation } from "../../../core/installation/installation.ts";
import { isObject, type Json, type JsonObject, listAt, stringAt } from "../../../core/json.ts";
import { annotationsOf, labelsOf } from "../../../core/kubernetes/object.ts";
import type { Cleanup } from "../../../core/module/module.ts";
import { pointer } from "../../../core/path.ts";
import { RECORD, recordText } from "../ledger/record.ts";
import { settingsOf } from "../settings.ts";
import {
  keyAndEffect,
  type NodeChange,
  type NodeDifference,
  startupChanges,
  taintId,
  writtenTaint,
} from "./difference.ts";

/**
 * The patch that brings a node to its desired state, except for changes in a grace period. It touches only keys that change. The list of
 * taints is replaced whole, which is safe because the patch is guarded by the resourceVersion that it was computed from.
 */
export function nodePatch(node: JsonObject, { changes, record }: NodeDifference): PatchOperation[] {
  const due = changes.filter(({ waits }) => waits === undefined);
  const annotations = due.filter(({ what }) => what === "annotation");
  const text = recordText(record);
  const before = stringAt(node, "metadata", "annotations", RECORD);
  if (text !== before) annotations.push(recordChange(before, text));
  return [
    ...mapOperations(
      "labels",
      labelsOf(node),
      due.filter(({ what }) => what === "label"),
    ),
    ...mapOperations("annotations", annotationsOf(node), annotations),
    ...taintOperations(
      node,
      due.filter(({ what }) => what === "taint"),
    ),
  ];
}

function recordChange(from: string | undefined, to: string | undefined): NodeChange {
  const what = "annotation";
  if (to === undefined) return { what, change: "remove", key: RECORD };
  return { what, change: from === undefined ? "add" : "change", key: RECORD, to };
}

function mapOperations(
  field: "labels" | "annotations",
  present: JsonObject | undefined,
  changes: readonly NodeChange[],
): PatchOperation[] {
  if (changes.length === 0) return [];
  const added = changes.filter(({ change }) => change !== "remove");
  if (present === undefined) {
    const value = Object.fromEntries(added.map(({ key, to }) => [key, to ?? ""]));
    return added.length === 0 ? [] : [{ op: "add", path: `/metadata/${field}`, value }];
  }
  return changes.map(({ change, key, to }): PatchOperation => {
    const path = pointer(["metadata", field, key]);
    if (change === "remove") return { op: "remove", path };
    return { op: change === "add" ? "add" : "replace", path, value: to ?? "" };
  });
}

/** The operations for changes of taints. */
function taintOperations(node: JsonObject, changes: readonly NodeChange[]): PatchOperation[] {
  if (changes.length === 0) return [];
  const present = listAt(node, "spec", "taints");
  const value = changedTaints(present, changes);
  if (value.length === 0) return [{ op: "remove", path: "/spec/taints" }];
  if (!isObject(node["spec"])) return [{ op: "add", path: "/spec", value: { taints: value } }];
  return [{ op: "add", path: "/spec/taints", value }];
}

/** Taints of other writers keep their order and their unknown fields. */
function changedTaints(present: readonly Json[], changes: readonly NodeChange[]): Json[] {
  const byId = new Map(changes.map((change) => [change.key, change]));
  const list: Json[] = [];
  for (const taint of present) {
    const found = byId.get(taintId(taint) ?? "");
    if (found === undefined) list.push(taint);
    else if (found.change === "change") list.push({ ...(taint as JsonObject), value: found.to ?? "" });
  }
  for (const { change, key, to } of changes)
    if (change === "add") list.push(writtenTaint({ ...keyAndEffect(key), value: to ?? "" }));
  return list;
}

/** A node that registered just before usher was uninstalled would stay unschedulable. Everything else that usher set may stay; the record on the node names it. */
export function startupCleanup(installation: Installation): Cleanup {
  const settings = settingsOf(installation);
  const { startupTaint } = settings;
  return {
    group: "",
    version: "v1",
    resource: "nodes",
    kind: "Node",
    what: `the taint ${startupTaint}`,
    patch: (node) => taintOperations(node, startupChanges(node, settings)),
    byHand: (name) => `kubectl taint nodes ${name} ${startupTaint}-`,
  };
}
