import type { JsonObject } from "../../../core/json.ts";
import { annotationsOf, labelsOf, nameOf } from "../../../core/kubernetes/object.ts";
import { ANNOTATIONS_LIMIT } from "../../../core/provenance/provenance.ts";
import { RECORD, RECORD_BYTES } from "../ledger/record.ts";
import { isProtected } from "../rules/label-keys.ts";
import { graceLeft, type Ownership, owns } from "../rules/ownership.ts";
import type { Doubtful, NodeRule, RuledTaint } from "../rules/rule.ts";
import type { RuleIndex } from "../rules/rule-index.ts";

/**
 * What labels of rules may take on one node. Kubernetes has no limit of its own short of etcd's 1.5 MiB for the whole object, above
 * which a node can't be written any more, and so not even join; nobody has a thousand labels on purpose.
 */
const LABELS_BYTES = 131_072;
/** Half of what the API server allows all annotations together: the rest is other people's. */
const ANNOTATIONS_BYTES = ANNOTATIONS_LIMIT / 2;
const MOST_TAINTS = 100;

/** What one place shall hold, and by which rule. */
interface Wanted<V = string> {
  readonly value: V;
  readonly rule: NodeRule;
}

/** A label that no rule covers and that is owned. */
export interface Unwanted {
  readonly key: string;
  readonly ownership: Ownership;
  /** Milliseconds until it may go. */
  readonly waits: number;
}

/** What all rules together say of one node. */
export interface Desired {
  readonly labels: ReadonlyMap<string, Wanted>;
  readonly annotations: ReadonlyMap<string, Wanted>;
  /** By `key:effect`. */
  readonly taints: ReadonlyMap<string, Wanted<RuledTaint>>;
  readonly unwanted: readonly Unwanted[];
  /** The first rule that asks that no work comes before the node is right. */
  readonly startup: NodeRule | undefined;
  /** Whether what usher set, and no rule is known to want, must stay: one that can't be read may want it. Taints by `key:effect`. */
  readonly keeps: (what: "annotations" | "taints", key: string) => boolean;
}

/**
 * The state of a node by all rules, whatever the order in which they came. Without a time nothing has to wait: for whoever asks what would
 * be done, and not when.
 */
export function desiredOf(node: JsonObject, book: RuleIndex, now?: number): Desired {
  const current = labelsOf(node);
  const rules = book.settings.enabled ? book.meaning(nameOf(node), current) : [];
  const labels = gather(rules, (rule) => rule.labels, { bytes: LABELS_BYTES });
  const annotations = gather(rules, (rule) => rule.annotations, {
    bytes: roomFor(rules, annotationsOf(node)),
  });
  const taints = gather(
    rules,
    (rule) => new Map(rule.taints.map((taint) => [`${taint.key}:${taint.effect}`, taint])),
    { entries: MOST_TAINTS },
  );
  // The startup taint is usher's own to set and to take off.
  for (const key of taints.keys()) if (key.startsWith(`${book.settings.startupTaint}:`)) taints.delete(key);
  return {
    labels,
    annotations,
    taints,
    unwanted: book.settings.enabled ? unwantedOf(current, book, rules, labels, now) : [],
    startup: rules.find((rule) => rule.startupTaint),
    keeps: (what, key) =>
      rules.some(({ doubtful }) => isIn(doubtful[what], key)) ||
      [...book.unclear].some((rule) => isIn(rule.doubtful[what], key) || names(rule, what, key)),
  };
}

function isIn({ keys, every }: Doubtful, key: string): boolean {
  return every || keys.has(key);
}

function names(rule: NodeRule, what: "annotations" | "taints", key: string): boolean {
  if (what === "annotations") return rule.annotations.has(key);
  return rule.taints.some((taint) => `${taint.key}:${taint.effect}` === key);
}

/** What annotations of rules may take, beside those of others and usher's own note. */
function roomFor(rules: readonly NodeRule[], present: JsonObject | undefined): number {
  if (present === undefined || rules.every(({ annotations }) => annotations.size === 0))
    return ANNOTATIONS_BYTES;
  const ruled = new Set(rules.flatMap(({ annotations }) => [...annotations.keys()]));
  let others = RECORD_BYTES;
  for (const [key, value] of Object.entries(present)) {
    if (key === RECORD || ruled.has(key)) continue;
    others += Buffer.byteLength(key) + Buffer.byteLength(typeof value === "string" ? value : "");
  }
  return Math.min(ANNOTATIONS_BYTES, ANNOTATIONS_LIMIT - others);
}

/** The first rule that names a place says what it holds. What has no more room is left out, the last first. */
function gather<V>(
  rules: readonly NodeRule[],
  of: (rule: NodeRule) => ReadonlyMap<string, V>,
  room: { readonly bytes?: number; readonly entries?: number },
): Map<string, Wanted<V>> {
  const wanted = new Map<string, Wanted<V>>();
  // What has no room for its first value does not get another's instead.
  const taken = new Set<string>();
  let bytes = 0;
  for (const rule of rules) {
    for (const [key, value] of of(rule)) {
      if (taken.has(key)) continue;
      taken.add(key);
      const size = Buffer.byteLength(key) + (typeof value === "string" ? Buffer.byteLength(value) : 0) + 6;
      if (bytes + size > (room.bytes ?? Number.POSITIVE_INFINITY)) continue;
      if (wanted.size >= (room.entries ?? Number.POSITIVE_INFINITY)) continue;
      bytes += size;
      wanted.set(key, { value, rule });
    }
  }
  return wanted;
}

function unwantedOf(
  labels: JsonObject | undefined,
  book: RuleIndex,
  rules: readonly NodeRule[],
  wanted: ReadonlyMap<string, unknown>,
  now: number | undefined,
): Unwanted[] {
  if (labels === undefined || book.ownerships.size === 0) return [];
  const unwanted: Unwanted[] = [];
  for (const key of Object.keys(labels)) {
    if (wanted.has(key) || isProtected(key)) continue;
    if (isCovered(key, rules) || isCovered(key, book.unclear)) continue;
    const first = firstOwner(key, book, now);
    if (first !== undefined) unwanted.push(first);
  }
  return unwanted;
}

function isCovered(key: string, rules: Iterable<NodeRule>): boolean {
  for (const { covers, coversEveryKey } of rules) if (coversEveryKey || covers.has(key)) return true;
  return false;
}

/** Of several that own a label, the one that waits least. */
function firstOwner(key: string, book: RuleIndex, now: number | undefined): Unwanted | undefined {
  let first: Unwanted | undefined;
  for (const ownership of book.ownerships) {
    if (!owns(ownership, key)) continue;
    const waits = now === undefined ? 0 : graceLeft(ownership, book.settings.graceMs, now);
    if (first === undefined || waits < first.waits) first = { key, ownership, waits };
  }
  return first;
}
