import { type NeedMore, need } from "../../../core/evaluate/decision.ts";
import { failureOf, type Need } from "../../../core/evaluate/need.ts";
import { isObject, type JsonObject, stringAt } from "../../../core/json.ts";
import type { PlannedWrite, ReconcileContext, ReconcileResult } from "../../../core/module/reconciler.ts";
import { OWN_LABELS } from "../../../core/registration/names.ts";
import type { Vouching } from "../desired/difference.ts";
import type { RuleIndex } from "../rules/rule-index.ts";
import { LedgerLines, linesOf } from "./ledger-lines.ts";
import type { LedgerMemory } from "./ledger-memory.ts";

/**
 * The taints that rules have set so far, and for which names, in usher's own namespace. The note on a node can't be trusted for taints: a
 * kubelet may write annotations of its node but not take taints off it, and a forged note would make usher do that for it. So usher takes
 * off only what the note and the ledger both say.
 */
const NAME = "usher-node-labels";
const DATA = "taints";

/** Half of what a ConfigMap holds; the oldest lines go first, and what is forgotten stays on its nodes. */
const MOST_BYTES = 524_288;

export function ledgerNeed(namespace: string): Need {
  return { get: { resource: "configmaps", namespace, name: NAME }, live: true };
}

/** What a plan needs to speak of the ledger. */
export interface Bookkeeping {
  readonly book: RuleIndex;
  readonly memory: LedgerMemory;
  /** Usher's own. */
  readonly namespace: string;
}

/** What was read of the ledger; `undefined` where it was not, or could not be. */
function readIn(context: ReconcileContext, { memory, namespace }: Bookkeeping): LedgerLines | undefined {
  const fact = context.facts.of(ledgerNeed(namespace));
  if (fact === undefined || failureOf(fact) !== undefined) return undefined;
  const text = "found" in fact && isObject(fact.found) ? stringAt(fact.found, "data", DATA) : undefined;
  const lines = new LedgerLines((text ?? "").split("\n"));
  memory.read(lines);
  return lines;
}

/** The ledger with what is still to be written into it; `undefined` where it could not be read. */
export function ledgerIn(context: ReconcileContext, keeping: Bookkeeping): Vouching | undefined {
  const known = readIn(context, keeping);
  if (known === undefined || keeping.memory.owed.size === 0) return known;
  const owed = new LedgerLines(keeping.memory.owed);
  return { vouches: (taint, node) => known.vouches(taint, node) || owed.vouches(taint, node) };
}

/** Writes down the taints of all rules before they are forgotten. */
export function reconcileLedger(keeping: Bookkeeping, context: ReconcileContext): ReconcileResult | NeedMore {
  if (wantedIn(keeping).size === 0) return { writes: [] };
  const asked = ledgerNeed(keeping.namespace);
  if (context.facts.of(asked) === undefined) return need(asked);
  const writes = ledgerWrites(keeping, context);
  if (writes === undefined) throw new Error("the ledger of taints could not be read");
  return { writes };
}

/** What makes the ledger hold all that it should; `undefined` where it could not be read. */
export function ledgerWrites(
  keeping: Bookkeeping,
  context: ReconcileContext,
): readonly PlannedWrite[] | undefined {
  const { namespace } = keeping;
  const known = readIn(context, keeping);
  if (known === undefined) return undefined;
  const wanted = wantedIn(keeping);
  if ([...wanted].every((line) => known.lines.has(line))) return [];
  const all = [...[...known.lines].filter((line) => !wanted.has(line)), ...wanted];
  const object: JsonObject = {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: NAME, namespace, labels: OWN_LABELS },
    data: { [DATA]: newest(all).join("\n") },
  };
  const fact = context.facts.of(ledgerNeed(namespace));
  // What it holds was read, so it must not be written over what somebody wrote since.
  const before = fact !== undefined && "found" in fact ? fact.found : undefined;
  return [{ apply: object, resourceVersion: stringAt(before, "metadata", "resourceVersion") }];
}

function wantedIn({ book, memory }: Bookkeeping): Set<string> {
  const wanted = new Set(memory.owed);
  for (const rule of book.rules) for (const line of linesOf(rule)) wanted.add(line);
  return wanted;
}

function newest(lines: readonly string[]): string[] {
  let from = lines.length;
  for (let bytes = 0; from > 0; from--) {
    bytes += Buffer.byteLength(lines[from - 1] ?? "") + 1;
    if (bytes > MOST_BYTES) break;
  }
  return lines.slice(from);
}
