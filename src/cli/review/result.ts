import type { ModuleTrace } from "../../core/evaluate/evaluate-hooks.ts";
import type { PatchOperation } from "../../core/evaluate/patch.ts";

/** What `usher review` says of one object; the JSON output is exactly this. */
export interface ReviewResult {
  readonly object: {
    readonly apiVersion: string;
    readonly kind: string;
    readonly namespace: string;
    readonly name: string;
  };
  readonly verdict: "allow" | "deny";
  /** Against the object as the API server would have defaulted it. */
  readonly patch: readonly PatchOperation[];
  readonly changes: readonly Change[];
  readonly violations: readonly Violation[];
  readonly warnings: readonly string[];
  /** What the decision needed and the source does not say. */
  readonly unknown: readonly string[];
  /** With --trace: what every policy said. */
  readonly trace?: readonly Traced[];
  /** With --trace, where no policy was tried: why. */
  readonly untouched?: string;
}

interface Change {
  readonly module: string;
  readonly policy: string;
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
  readonly applies: ModuleTrace["applies"];
  readonly why: string;
  /** What it did: `+` added, `=` was there already, `!` left out. */
  readonly parts: readonly string[];
}

export interface ReviewSummary {
  /** Includes the patched. */
  readonly allowed: number;
  readonly denied: number;
  readonly patched: number;
}

export function summaryOf(results: readonly ReviewResult[]): ReviewSummary {
  const denied = results.filter(({ verdict }) => verdict === "deny").length;
  const patched = results.filter(({ verdict, patch }) => verdict === "allow" && patch.length > 0).length;
  return { allowed: results.length - denied, denied, patched };
}
