import type { JsonObject } from "../../../core/json.ts";
import { isKubeletLabel } from "../../../core/kubernetes/node-label-keys.ts";
import { annotationsOf, labelsOf, nameOf } from "../../../core/kubernetes/object.ts";
import { byText } from "../../../core/order.ts";
import { ANNOTATIONS_LIMIT } from "../../../core/provenance/provenance.ts";
import { RECORD, RECORD_BYTES } from "../ledger/record.ts";
import { type Ownership, owns } from "../rules/ownership.ts";
import type { InvalidKeys, NodeRule, RuledTaint } from "../rules/rule.ts";
import type { RuleIndex } from "../rules/rule-index.ts";

/**
 * Bytes of rules' labels on one node. Kubernetes' only limit is etcd's 1.5 MiB for the whole object, above which a node
 * can't be written any more, and so not even join. A thousand labels fit.
 */
const LABELS_BYTES = 131_072;
/** Half of the API server's limit for all annotations together; the rest is for other writers. */
const ANNOTATIONS_BYTES = ANNOTATIONS_LIMIT / 2;
const MOST_TAINTS = 100;

/** The value of one label, annotation or taint, and the rule that sets it. */
interface Wanted<V = string> {
  readonly value: V;
  readonly rule: NodeRule;
}

/** An owned label that no rule covers. */
export interface Unwanted {
  readonly key: string;
  readonly owners: readonly [Ownership, ...Ownership[]];
}

/** The combined requirements of all rules for one node. */
export interface Desired {
  readonly labels: ReadonlyMap<string, Wanted>;
  readonly annotations: ReadonlyMap<string, Wanted>;
  /** By `key:effect`. */
  readonly taints: ReadonlyMap<string, Wanted<RuledTaint>>;
  readonly unwanted: readonly Unwanted[];
  /** The rules that match the node, by precedence. */
  readonly rules: readonly NodeRule[];
  /** The first rule that requires the startup taint on new nodes. */
  readonly startup: NodeRule | undefined;
  /** Whether a value that usher set must stay although no rule sets it: an invalid rule may intend to. Taints by `key:effect`. */
  readonly retains: (what: "annotations" | "taints", key: string) => boolean;
}

/** The desired state of a node. Depends on the node and the rules alone, not on the order in which rules were created. */
export function desiredOf(node: JsonObject, index: RuleIndex): Desired {
  const current = labelsOf(node);
  const rules = index.matching(nameOf(node), current);
  const labels = gather(rules, (rule) => rule.labels, { bytes: LABELS_BYTES });
  const annotations = gather(rules, (rule) => rule.annotations, {
    bytes: roomFor(rules, annotationsOf(node)),
  });
  const taints = gather(
    rules,
    (rule) => new Map(rule.taints.map((taint) => [`${taint.key}:${taint.effect}`, taint])),
    { entries: MOST_TAINTS },
  );
  // Only usher itself sets and removes the startup taint.
  for (const key of taints.keys()) if (key.startsWith(`${index.settings.startupTaint}:`)) taints.delete(key);
  return {
    rules,
    labels,
    annotations,
    taints,
    unwanted: unwantedOf(current, index, rules, labels),
    startup: rules.find((rule) => rule.startupTaint),
    retains: (what, key) =>
      rules.some(({ invalidKeys }) => isIn(invalidKeys[what], key)) ||
      [...index.unclear].some((rule) => isIn(rule.invalidKeys[what], key) || names(rule, what, key)),
  };
}

function isIn({ keys, every }: InvalidKeys, key: string): boolean {
  return every || keys.has(key);
}

function names(rule: NodeRule, what: "annotations" | "taints", key: string): boolean {
  if (what === "annotations") return rule.annotations.has(key);
  return rule.taints.some((taint) => `${taint.key}:${taint.effect}` === key);
}

/** The maximum bytes of rules' annotations, beside the node's other annotations and usher's record. */
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

/** The first rule that sets a key wins. Values beyond the limit are left out, the last first. */
function gather<V>(
  rules: readonly NodeRule[],
  of: (rule: NodeRule) => ReadonlyMap<string, V>,
  room: { readonly bytes?: number; readonly entries?: number },
): Map<string, Wanted<V>> {
  const wanted = new Map<string, Wanted<V>>();
  // A key whose first value exceeds the limit does not get another rule's value instead.
  const decided = new Set<string>();
  let bytes = 0;
  for (const rule of rules) {
    for (const [key, value] of of(rule)) {
      if (decided.has(key)) continue;
      decided.add(key);
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
  index: RuleIndex,
  rules: readonly NodeRule[],
  wanted: ReadonlyMap<string, unknown>,
): Unwanted[] {
  if (labels === undefined || index.ownerships.size === 0) return [];
  const unwanted: Unwanted[] = [];
  for (const key of Object.keys(labels)) {
    if (wanted.has(key) || isKubeletLabel(key)) continue;
    if (isCovered(key, rules) || isCovered(key, index.unclear)) continue;
    const [owner, ...others] = [...index.ownerships]
      .filter((ownership) => owns(ownership, key))
      .sort(byText(({ id }) => id));
    if (owner !== undefined) unwanted.push({ key, owners: [owner, ...others] });
  }
  return unwanted;
}

function isCovered(key: string, rules: Iterable<NodeRule>): boolean {
  for (const { covers, coversEveryKey } of rules) if (coversEveryKey || covers.has(key)) return true;
  return false;
}
