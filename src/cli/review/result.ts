import type { ModuleTrace } from "../../core/evaluate/evaluate-hooks.ts";
import type { PatchOperation } from "../../core/evaluate/patch.ts";

/** The result of one object; the JSON output is exactly this. */
export interface ReviewResult {
  readonly object: {
    readonly apiVersion: string;
    readonly kind: string;
    readonly namespace: string;
    readonly name: string;
  };
  readonly verdict: "allow" | "deny";
  /** Against the object with the API server's defaults. */
  readonly patch: readonly PatchOperation[];
  readonly changes: readonly Change[];
  readonly violations: readonly Violation[];
  readonly warnings: readonly string[];
  /** What the decision needed and the source does not contain. */
  readonly unknown: readonly string[];
  /** With --trace: every policy. */
  readonly trace?: readonly Traced[];
  /** With --trace: why no policy was evaluated. */
  readonly untouched?: string;
}

export interface Change {
  readonly module: string;
  readonly policy: string;
  readonly change: "add" | "change" | "remove";
  readonly path: string;
  /** For people: `nodeSelector pool=etcd` */
  readonly message: string;
}

interface Violation {
  readonly module: string;
  readonly policy: string;
  readonly rule: string;
  readonly code: string;
  readonly path: string;
  readonly message: string;
}

export interface Traced {
  readonly module: string;
  readonly policy: string;
  readonly applies: ModuleTrace["applies"] | "refuses";
  readonly why: string;
  /** `+` added, `=` already set, `!` skipped. */
  readonly parts: readonly string[];
}

export interface ReviewSummary {
  /** Including patched objects. */
  readonly allowed: number;
  readonly denied: number;
  readonly patched: number;
}

export function summaryOf(results: readonly ReviewResult[]): ReviewSummary {
  const denied = results.filter(({ verdict }) => verdict === "deny").length;
  const patched = results.filter(({ verdict, patch }) => verdict === "allow" && patch.length > 0).length;
  return { allowed: results.length - denied, denied, patched };
}
