import { createHash } from "node:crypto";
import { at, isObject, type JsonObject, stringAt } from "../../../core/json.ts";
import { byText } from "../../../core/order.ts";

/** The annotation on a node that records usher's values, and their rules. */
export const RECORD = "usher.dev/node-labels";

/** The maximum bytes of the record: together with all other annotations it must stay below the API server's limit. */
export const RECORD_BYTES = 65_536;

/** The rule that set a key, and the value: a key with another value by now was changed by another writer. */
export interface Recorded {
  readonly rule: string;
  readonly value: string;
}

/** Usher's values on a node. Labels are removed by ownership, so only their rule is recorded, for readers. */
export interface NodeRecord {
  readonly labels: ReadonlyMap<string, string>;
  readonly annotations: ReadonlyMap<string, Recorded>;
  /** By `key:effect`. */
  readonly taints: ReadonlyMap<string, Recorded>;
}

/** Reads the record. Every writer of the node may change it, so it is only a hint. */
export function recordOf(node: JsonObject): NodeRecord {
  const labels = new Map<string, string>();
  const read = parsed(stringAt(node, "metadata", "annotations", RECORD));
  const named = at(read, "labels");
  if (isObject(named)) {
    for (const key of Object.keys(named)) {
      const rule = named[key];
      if (typeof rule === "string") labels.set(key, rule);
    }
  }
  return { labels, annotations: pairsIn(read, "annotations"), taints: pairsIn(read, "taints") };
}

function parsed(text: string | undefined): JsonObject {
  if (text === undefined) return {};
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value as JsonObject) ? (value as JsonObject) : {};
  } catch {
    return {};
  }
}

function pairsIn(read: JsonObject, field: string): Map<string, Recorded> {
  const found = new Map<string, Recorded>();
  const map = at(read, field);
  if (!isObject(map)) return found;
  for (const key of Object.keys(map)) {
    const rule = stringAt(map[key], "rule");
    const value = stringAt(map[key], "value");
    if (rule !== undefined && value !== undefined) found.set(key, { rule, value });
  }
  return found;
}

/** The record as canonical JSON; `undefined` if it is empty. Labels are left out if it would be too large. */
export function recordText({ labels, annotations, taints }: NodeRecord): string | undefined {
  const needed = {
    ...(annotations.size === 0 ? {} : { annotations: sorted(annotations) }),
    ...(taints.size === 0 ? {} : { taints: sorted(taints) }),
  };
  const whole = labels.size === 0 ? needed : { labels: sorted(labels), ...needed };
  for (const parts of [whole, needed]) {
    if (Object.keys(parts).length === 0) return undefined;
    const text = JSON.stringify(parts);
    if (Buffer.byteLength(text) <= RECORD_BYTES) return text;
  }
  return undefined;
}

/** A value as the record has it: of a long one the digest. */
export function recordedValue(value: string): string {
  return value.length <= 63 ? value : `sha256:${createHash("sha256").update(value).digest("hex")}`;
}

function sorted<V>(map: ReadonlyMap<string, V>): Record<string, V> {
  return Object.fromEntries([...map].sort(byText(([key]) => key)));
}
