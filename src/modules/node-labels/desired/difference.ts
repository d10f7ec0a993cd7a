import { type Json, type JsonObject, listAt, own, stringAt } from "../../../core/json.ts";
import { annotationsOf, labelsOf, nameOf } from "../../../core/kubernetes/object.ts";
import { type NodeRecord, noted, type Recorded, recordOf } from "../ledger/record.ts";
import type { RuledTaint } from "../rules/rule.ts";
import type { Settings } from "../settings.ts";
import type { Desired } from "./desired.ts";

/** One thing on a node that is not as the rules say. */
export interface NodeChange {
  readonly what: "label" | "annotation" | "taint";
  readonly change: "add" | "change" | "remove";
  /** For a taint `key:effect`. */
  readonly key: string;
  readonly from?: string;
  readonly to?: string;
  /** The rule or the ownership, as `namespace/name`; absent for what is usher's own. */
  readonly by?: string;
  /** Milliseconds until it may be done. */
  readonly waits?: number;
}

export interface Difference {
  readonly changes: readonly NodeChange[];
  readonly record: NodeRecord;
  /** Something is to be taken off that only the ledger can vouch for. */
  readonly asksLedger: boolean;
}

/** Knows which taints rules have meant which nodes to have. */
export interface Vouching {
  readonly vouches: (taint: RuledTaint, node: string) => boolean;
}

/**
 * What must change on a node so that it is as all rules say. `ledger` knows the taints that usher may have set; without it none of
 * those is taken off.
 */
export function differenceOf(
  node: JsonObject,
  desired: Desired,
  settings: Settings,
  ledger: Vouching | undefined,
): Difference {
  const before = recordOf(node);
  if (!settings.enabled)
    return { changes: startupChanges(node, settings), record: before, asksLedger: false };
  const changes: NodeChange[] = [];
  const labels = labelChanges(node, desired, before, changes);
  const annotations = annotationChanges(node, desired, before, changes);
  const { taints, asksLedger } = taintChanges(node, desired, before, ledger, changes);
  changes.push(...startupChanges(node, settings));
  return { changes, record: { labels, annotations, taints }, asksLedger };
}

function labelChanges(
  node: JsonObject,
  desired: Desired,
  before: NodeRecord,
  changes: NodeChange[],
): Map<string, string> {
  const present = labelsOf(node);
  const record = new Map<string, string>();
  for (const [key, { value, rule }] of desired.labels) {
    const from = textOf(present, key);
    if (from !== value) changes.push(set("label", key, from, value, rule.id));
    // What was there already, and right, is whoever's it was.
    if (from !== value || before.labels.has(key)) record.set(key, rule.id);
  }
  for (const { key, ownership, waits } of desired.unwanted) {
    const from = textOf(present, key) ?? "";
    changes.push({
      what: "label",
      change: "remove",
      key,
      from,
      by: ownership.id,
      ...(waits > 0 ? { waits } : {}),
    });
  }
  return record;
}

function annotationChanges(
  node: JsonObject,
  desired: Desired,
  before: NodeRecord,
  changes: NodeChange[],
): Map<string, Recorded> {
  const present = annotationsOf(node);
  const record = new Map<string, Recorded>();
  for (const [key, { value, rule }] of desired.annotations) {
    const from = textOf(present, key);
    if (from !== value) changes.push(set("annotation", key, from, value, rule.id));
    if (from !== value || before.annotations.has(key))
      record.set(key, { rule: rule.id, value: noted(value) });
  }
  for (const [key, recorded] of before.annotations) {
    const from = textOf(present, key);
    if (desired.annotations.has(key) || from === undefined || noted(from) !== recorded.value) continue;
    if (desired.keeps("annotations", key)) record.set(key, recorded);
    else changes.push({ what: "annotation", change: "remove", key, from, by: recorded.rule });
  }
  return record;
}

function taintChanges(
  node: JsonObject,
  desired: Desired,
  before: NodeRecord,
  ledger: Vouching | undefined,
  changes: NodeChange[],
): { readonly taints: Map<string, Recorded>; readonly asksLedger: boolean } {
  const present = taintsOn(node);
  const record = new Map<string, Recorded>();
  let asksLedger = false;
  for (const [key, { value: taint, rule }] of desired.taints) {
    const from = present.get(key);
    if (from !== taint.value) changes.push(set("taint", key, from, taint.value, rule.id));
    if (from !== taint.value || before.taints.has(key))
      record.set(key, { rule: rule.id, value: taint.value });
  }
  for (const [key, recorded] of before.taints) {
    const from = present.get(key);
    if (desired.taints.has(key) || from !== recorded.value) continue;
    const kept = desired.keeps("taints", key);
    const known = ledger?.vouches({ ...keyAndEffect(key), value: from }, nameOf(node));
    if (kept || known === undefined) record.set(key, recorded);
    if (kept) continue;
    asksLedger ||= known === undefined;
    if (known === true) changes.push({ what: "taint", change: "remove", key, from, by: recorded.rule });
  }
  return { taints: record, asksLedger };
}

/** It holds work back only until the node is right, and whatever puts it right takes it off in the same write. */
export function startupChanges(node: JsonObject, { startupTaint }: Settings): NodeChange[] {
  const changes: NodeChange[] = [];
  for (const [key, from] of taintsOn(node))
    if (keyAndEffect(key).key === startupTaint) changes.push({ what: "taint", change: "remove", key, from });
  return changes;
}

function set(
  what: NodeChange["what"],
  key: string,
  from: string | undefined,
  to: string,
  by: string,
): NodeChange {
  return from === undefined
    ? { what, change: "add", key, to, by }
    : { what, change: "change", key, from, to, by };
}

function textOf(map: JsonObject | undefined, key: string): string | undefined {
  const value = own(map, key);
  return typeof value === "string" ? value : undefined;
}

/** The values of a node's taints by `key:effect`, of which a node has each once. */
export function taintsOn(node: JsonObject): Map<string, string> {
  const taints = new Map<string, string>();
  for (const taint of listAt(node, "spec", "taints")) {
    const id = taintId(taint);
    if (id !== undefined) taints.set(id, stringAt(taint, "value") ?? "");
  }
  return taints;
}

export function taintId(taint: Json): string | undefined {
  const key = stringAt(taint, "key");
  const effect = stringAt(taint, "effect");
  return key === undefined || effect === undefined ? undefined : `${key}:${effect}`;
}

/** Neither a key nor an effect holds a colon. */
export function keyAndEffect(id: string): { readonly key: string; readonly effect: string } {
  const colon = id.lastIndexOf(":");
  return { key: id.slice(0, colon), effect: id.slice(colon + 1) };
}

/** As a node carries it: without a value where it has none. */
export function writtenTaint({ key, value, effect }: RuledTaint): JsonObject {
  return value === "" ? { key, effect } : { key, value, effect };
}
