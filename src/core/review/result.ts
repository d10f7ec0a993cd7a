import type { ModuleTrace } from "../evaluate/evaluate-hooks.ts";
import type { PatchOperation } from "../evaluate/patch.ts";

/** The result of one object; the JSON output is exactly this. */
export interface ReviewResult {
  readonly object: {
    readonly apiVersion: string;
    readonly kind: string;
    readonly namespace: string;
    readonly name: string;
  };
  /** `patch`: allowed, with changes. */
  readonly verdict: "allow" | "patch" | "deny";
  /** Against the object with the API server's defaults. */
  readonly patch: readonly PatchOperation[];
  readonly changes: readonly Change[];
  readonly violations: readonly Violation[];
  readonly warnings: readonly string[];
  /** Audit annotations, with the keys that they have after the webhook's name. */
  readonly audit: Readonly<Record<string, string>>;
  /** What the decision needed and the source does not contain. */
  readonly unknown: readonly string[];
  /** Of a workload that is allowed: why the pods that its controller creates of the template are denied. */
  readonly podViolations?: readonly Violation[];
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

export interface Violation {
  readonly module: string;
  readonly policy: string;
  readonly rule: string;
  readonly code: string;
  readonly path: string;
  readonly message: string;
}

export interface Traced {
  readonly module: string;
  readonly kind: string;
  readonly policy: string;
  /** One rule of the policy. @default the policy as a whole */
  readonly rule?: string;
  readonly applies: ModuleTrace["applies"];
  readonly why: string;
  /** `+` added, `=` already set, `!` skipped. */
  readonly parts: readonly string[];
}

export interface ReviewSummary {
  /** Including patched objects. */
  readonly allowed: number;
  readonly unchanged: number;
  readonly patched: number;
  readonly denied: number;
}

/** Whether the object is denied, or every pod of it will be. */
export function isRefused({ verdict, podViolations = [] }: ReviewResult): boolean {
  return verdict === "deny" || podViolations.length > 0;
}

export function summaryOf(results: readonly ReviewResult[]): ReviewSummary {
  const count = (wanted: ReviewResult["verdict"]) =>
    results.filter(({ verdict }) => verdict === wanted).length;
  const [unchanged, patched, denied] = [count("allow"), count("patch"), count("deny")];
  return { allowed: unchanged + patched, unchanged, patched, denied };
}
