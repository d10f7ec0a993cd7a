import { type NeedMore, need } from "../../../core/decision/decision.ts";
import { failureOf, type Need } from "../../../core/decision/need.ts";
import { isObject, type JsonObject, stringAt } from "../../../core/json.ts";
import type { PlannedWrite, ReconcileContext, ReconcileResult } from "../../../core/module/reconciler.ts";
import { OWN_LABELS } from "../../../core/registration/names.ts";
import type { RuleIndex } from "../rules/rule-index.ts";
import { LedgerLines, linesOf } from "./ledger-lines.ts";

/**
 * The taints that rules have set so far, and for which names, in a ConfigMap of usher's namespace. The record on a node can't be trusted
 * for taints: a kubelet may write annotations of its node but not remove its taints, and a forged record would make usher do that for it.
 * So usher removes only taints that both the record and the ledger name.
 */
const NAME = "usher-node-labels";
const DATA = "taints";

/** Half of a ConfigMap's limit; the oldest lines are dropped first, and their taints stay on nodes. */
const MOST_BYTES = 524_288;

export function ledgerNeed(namespace: string): Need {
  return { get: { resource: "configmaps", namespace, name: NAME }, live: true, mayBeAbsent: true };
}

type WithFacts = Pick<ReconcileContext, "facts">;

/** The leader's knowledge of the ledger without reading it. */
export interface LedgerCache {
  /** As last read. */
  lines?: LedgerLines;
}

/** The permissions to read and write the ledger. */
export interface LedgerAccess {
  readonly index: RuleIndex;
  readonly cache: LedgerCache;
  /** Usher's own. */
  readonly namespace: string;
}

/** The fetched ledger; `undefined` if it was not, or could not be. */
export function fetchedLedger({ facts }: WithFacts, namespace: string): LedgerLines | undefined {
  const fact = facts.of(ledgerNeed(namespace));
  if (fact === undefined || failureOf(fact) !== undefined) return undefined;
  const text = "found" in fact && isObject(fact.found) ? stringAt(fact.found, "data", DATA) : undefined;
  return new LedgerLines((text ?? "").split("\n"));
}

/** The same, for the leader, which remembers it. */
export function readLedger(context: WithFacts, { cache, namespace }: LedgerAccess): LedgerLines | undefined {
  const lines = fetchedLedger(context, namespace);
  if (lines !== undefined) cache.lines = lines;
  return lines;
}

/** Records the taints of all rules before they are set, also when nodes are created. */
export function reconcileLedger(access: LedgerAccess, context: WithFacts): ReconcileResult<never> | NeedMore {
  if (requiredLines(access).size === 0) return { writes: [] };
  const asked = ledgerNeed(access.namespace);
  if (context.facts.of(asked) === undefined) return need(asked);
  const writes = ledgerWrites(access, context);
  if (writes === undefined) throw new Error("cannot read the ledger of taints");
  return { writes };
}

/** The writes that complete the ledger; `undefined` if it could not be read. */
export function ledgerWrites(access: LedgerAccess, context: WithFacts): readonly PlannedWrite[] | undefined {
  const { namespace } = access;
  const stored = readLedger(context, access);
  if (stored === undefined) return undefined;
  const required = requiredLines(access);
  if ([...required].every((line) => stored.lines.has(line))) return [];
  const all = [...[...stored.lines].filter((line) => !required.has(line)), ...required];
  const object: JsonObject = {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: NAME, namespace, labels: OWN_LABELS },
    data: { [DATA]: newest(all).join("\n") },
  };
  const fact = context.facts.of(ledgerNeed(namespace));
  // Conditional: lines that were written since it was read must not be lost.
  const before = fact !== undefined && "found" in fact ? fact.found : undefined;
  return [{ apply: object, resourceVersion: stringAt(before, "metadata", "resourceVersion") }];
}

function requiredLines({ index }: LedgerAccess): Set<string> {
  const required = new Set<string>();
  for (const rule of index.rules) for (const line of linesOf(rule)) required.add(line);
  return required;
}

function newest(lines: readonly string[]): string[] {
  let from = lines.length;
  for (let bytes = 0; from > 0; from--) {
    bytes += Buffer.byteLength(lines[from - 1] ?? "") + 1;
    if (bytes > MOST_BYTES) break;
  }
  return lines.slice(from);
}
