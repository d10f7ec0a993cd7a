import { type NeedMore, need } from "../../../core/decision/decision.ts";
import { failureOf, type Need } from "../../../core/decision/need.ts";
import { isObject, type JsonObject, stringAt } from "../../../core/json.ts";
import type { PlannedWrite, ReconcileContext, ReconcileResult } from "../../../core/module/reconciler.ts";
import { OWN_LABELS } from "../../../core/registration/names.ts";
import type { NodeRule } from "../rules/rule.ts";
import type { RuleIndex } from "../rules/rule-index.ts";
import type { TaintLedger } from "./ledger-lines.ts";
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
  return { get: { resource: "configmaps", namespace, name: NAME }, live: true };
}

type WithFacts = Pick<ReconcileContext, "facts">;

/** The permissions to read and write the ledger. */
export interface LedgerAccess {
  readonly index: RuleIndex;
  readonly cache: LedgerCache;
  /** Usher's own. */
  readonly namespace: string;
}

/** The fetched ledger; `undefined` if it was not, or could not be. */
function fetchedLines({ facts }: WithFacts, { cache, namespace }: LedgerAccess): LedgerLines | undefined {
  const fact = facts.of(ledgerNeed(namespace));
  if (fact === undefined || failureOf(fact) !== undefined) return undefined;
  const text = "found" in fact && isObject(fact.found) ? stringAt(fact.found, "data", DATA) : undefined;
  const lines = new LedgerLines((text ?? "").split("\n"));
  cache.read(lines);
  return lines;
}

/** The ledger with its pending lines; `undefined` if it could not be read. */
export function fetchedLedger(context: WithFacts, access: LedgerAccess): TaintLedger | undefined {
  const stored = fetchedLines(context, access);
  const { pending: pendingLines } = access.cache;
  if (stored === undefined || pendingLines.size === 0) return stored;
  const pending = new LedgerLines(pendingLines);
  return { includes: (taint, node) => stored.includes(taint, node) || pending.includes(taint, node) };
}

/** Records the taints of all rules before the rules are gone. */
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
  const stored = fetchedLines(context, access);
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

function requiredLines({ index, cache }: LedgerAccess): Set<string> {
  const required = new Set(cache.pending);
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

/** The lines of changed rules. While the ledger can't be written, they are only kept here. */
const MOST_PENDING = 4_096;

/** The leader's knowledge of the ledger without reading it. */
export class LedgerCache {
  /** As last read. */
  lines: LedgerLines | undefined;
  /** Lines of changed or deleted rules that are not confirmed in the ledger: mutate-node may have set such a taint. */
  readonly pending = new Set<string>();

  read(lines: LedgerLines): void {
    this.lines = lines;
    for (const line of lines.lines) this.pending.delete(line);
  }

  ruleChanged(before: NodeRule): void {
    for (const line of linesOf(before)) if (this.lines?.lines.has(line) !== true) this.pending.add(line);
    for (const line of this.pending) {
      if (this.pending.size <= MOST_PENDING) break;
      this.pending.delete(line);
    }
  }
}
