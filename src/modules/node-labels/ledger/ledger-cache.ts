import type { NodeRule } from "../rules/rule.ts";
import { type LedgerLines, linesOf } from "./ledger-lines.ts";

/** The lines of some changed rules. While the ledger can't be written, nothing else remembers them. */
const MOST_PENDING = 4_096;

/** What the leader knows of the ledger without reading it. */
export class LedgerCache {
  /** As last read. */
  lines: LedgerLines | undefined;
  /** Lines of changed or deleted rules that the ledger has not been seen to hold: mutate-node may have set such a taint. */
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
