import { type Json, type JsonObject, listAt, own, stringAt } from "../../../core/json.ts";
import { annotationsOf, labelsOf, nameOf } from "../../../core/kubernetes/object.ts";
import type { TaintLedger } from "../ledger/ledger-lines.ts";
import { type NodeRecord, type Recorded, recordedValue, recordOf } from "../ledger/record.ts";
import type { Ownership } from "../rules/ownership.ts";
import type { RuledTaint } from "../rules/rule.ts";
import type { NodeLabelsSettings } from "../settings.ts";
import type { Desired, Unwanted } from "./desired.ts";

/** One value on a node that differs from the desired state. */
export interface NodeChange {
  readonly what: "label" | "annotation" | "taint";
  readonly change: "add" | "change" | "remove";
  /** For a taint `key:effect`. */
  readonly key: string;
  readonly from?: string;
  readonly to?: string;
  /** The Labels or OwnedLabels, as `namespace/name`; absent for usher's own taint and record. */
  readonly by?: string;
  /** Milliseconds until it is due: the rest of a grace period. */
  readonly waits?: number;
}

export interface NodeDifference {
  readonly changes: readonly NodeChange[];
  readonly record: NodeRecord;
  /** A taint may have to be removed, which only the ledger can decide. */
  readonly needsLedger: boolean;
}

/** For a preview, which shows every possible change: every recorded taint counts as usher's. */
export const EVERY_TAINT: TaintLedger = { includes: () => true };

export interface DifferenceOptions {
  /** Without it no taint of a rule is removed. */
  readonly ledger?: TaintLedger | undefined;
  /** Milliseconds until an OwnedLabels may remove labels. @default none: for a preview, which shows what would be done and not when */
  readonly graceLeft?: (ownership: Ownership) => number;
}

/** The changes that bring a node to its desired state. */
export function differenceOf(
  node: JsonObject,
  desired: Desired,
  settings: NodeLabelsSettings,
  { ledger, graceLeft = () => 0 }: DifferenceOptions = {},
): NodeDifference {
  const before = recordOf(node);
  const changes: NodeChange[] = [];
  const labels = labelChanges(node, desired, before, graceLeft, changes);
  const annotations = annotationChanges(node, desired, before, changes);
  const { taints, needsLedger } = taintChanges(node, desired, before, ledger, changes);
  changes.push(...startupChanges(node, settings));
  return { changes, record: { labels, annotations, taints }, needsLedger };
}

function labelChanges(
  node: JsonObject,
  desired: Desired,
  before: NodeRecord,
  graceLeft: (ownership: Ownership) => number,
  changes: NodeChange[],
): Map<string, string> {
  const present = labelsOf(node);
  const record = new Map<string, string>();
  for (const [key, { value, rule }] of desired.labels) {
    const from = textOf(present, key);
    if (from !== value) changes.push(set("label", key, from, value, rule.id));
    // A value that was there already, and right, is not usher's.
    if (from !== value || before.labels.has(key)) record.set(key, rule.id);
  }
  for (const { key, owners } of desired.unwanted) {
    const from = textOf(present, key) ?? "";
    const { id, waits } = firstDue(owners, graceLeft);
    changes.push({ what: "label", change: "remove", key, from, by: id, ...(waits > 0 ? { waits } : {}) });
  }
  return record;
}

/** Of several owners of a label, the one whose grace period ends first. */
function firstDue(
  [first, ...others]: Unwanted["owners"],
  graceLeft: (ownership: Ownership) => number,
): { readonly id: string; readonly waits: number } {
  let due = { id: first.id, waits: graceLeft(first) };
  for (const owner of others) {
    const waits = graceLeft(owner);
    if (waits < due.waits) due = { id: owner.id, waits };
  }
  return due;
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
      record.set(key, { rule: rule.id, value: recordedValue(value) });
  }
  for (const [key, recorded] of before.annotations) {
    const from = textOf(present, key);
    if (desired.annotations.has(key) || from === undefined || recordedValue(from) !== recorded.value)
      continue;
    if (desired.retains("annotations", key)) record.set(key, recorded);
    else changes.push({ what: "annotation", change: "remove", key, from, by: recorded.rule });
  }
  return record;
}

function taintChanges(
  node: JsonObject,
  desired: Desired,
  before: NodeRecord,
  ledger: TaintLedger | undefined,
  changes: NodeChange[],
): { readonly taints: Map<string, Recorded>; readonly needsLedger: boolean } {
  const present = taintsOn(node);
  const record = new Map<string, Recorded>();
  let needsLedger = false;
  for (const [key, { value: taint, rule }] of desired.taints) {
    const from = present.get(key);
    if (from !== taint.value) changes.push(set("taint", key, from, taint.value, rule.id));
    if (from !== taint.value || before.taints.has(key))
      record.set(key, { rule: rule.id, value: taint.value });
  }
  for (const [key, recorded] of before.taints) {
    const from = present.get(key);
    if (desired.taints.has(key) || from !== recorded.value) continue;
    const kept = desired.retains("taints", key);
    const known = ledger?.includes({ ...keyAndEffect(key), value: from }, nameOf(node));
    if (kept || known === undefined) record.set(key, recorded);
    if (kept) continue;
    needsLedger ||= known === undefined;
    if (known === true) changes.push({ what: "taint", change: "remove", key, from, by: recorded.rule });
  }
  return { taints: record, needsLedger };
}

/** The startup taint keeps pods away only until the node is labelled; the write that labels it removes the taint. */
export function startupChanges(node: JsonObject, { startupTaint }: NodeLabelsSettings): NodeChange[] {
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

/** The values of a node's taints by `key:effect`, which is unique on a node. */
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

/** Neither a key nor an effect contains a colon. */
export function keyAndEffect(id: string): { readonly key: string; readonly effect: string } {
  const colon = id.lastIndexOf(":");
  return { key: id.slice(0, colon), effect: id.slice(colon + 1) };
}

/** A taint in a node's form: without a value if it is empty. */
export function writtenTaint({ key, value, effect }: RuledTaint): JsonObject {
  return value === "" ? { key, effect } : { key, value, effect };
}
