import type { Assembly } from "../../../core/evaluate/assembly.ts";
import type { NodeRule } from "../rules/rule.ts";
import { type LedgerLines, linesOf } from "./ledger-lines.ts";

/** The lines of some changed rules. While the ledger can't be written they are all that is known of those. */
const MOST_OWED = 4_096;

/** What whoever leads knows of the ledger without reading it. */
export class LedgerMemory {
  /** What it held when it was last read. */
  ledger: LedgerLines | undefined;
  /** Lines of rules that are gone which nobody has seen in it yet: a node may have got such a taint at its birth. */
  readonly owed = new Set<string>();

  read(ledger: LedgerLines): void {
    this.ledger = ledger;
    for (const line of ledger.lines) this.owed.delete(line);
  }

  owe(rule: NodeRule): void {
    for (const line of linesOf(rule)) if (this.ledger?.lines.has(line) !== true) this.owed.add(line);
    for (const line of this.owed) {
      if (this.owed.size <= MOST_OWED) break;
      this.owed.delete(line);
    }
  }
}

const memories = new WeakMap<Assembly, LedgerMemory>();

/** A book is made anew where many rules change at once; this is not. */
export function memoryOf(assembly: Assembly): LedgerMemory {
  const memory = memories.get(assembly) ?? new LedgerMemory();
  memories.set(assembly, memory);
  return memory;
}
