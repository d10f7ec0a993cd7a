import { randomUUID } from "node:crypto";
import { messageWithCode } from "../../core/decision/finding.ts";
import type { Evaluation } from "../../core/evaluate/evaluate-hooks.ts";
import { stringAt } from "../../core/json.ts";
import { policyKey } from "../../core/policy/policy-ref.ts";

/** One decision of this server, as its ops port reports it where the cluster is files. */
export interface RecordedDecision {
  /** Grows by one. */
  readonly number: number;
  /** RFC 3339. */
  readonly time: string;
  readonly verdict: "refused" | "changed" | "warned" | "allowed";
  readonly operation: string;
  readonly object: { readonly kind: string; readonly namespace: string; readonly name: string };
  readonly user: string;
  /** Keys of policies: `ClusterPodSchedulingPolicy/etcd-pool`. */
  readonly policies: readonly string[];
  readonly lines: readonly string[];
}

/** As many as a person scrolls through. */
const MOST_RECORDED = 1_000;

/** Names and messages come from clients: a line of a page holds no more. */
const LENGTH = 512;
const MOST_LINES = 20;

/** The last decisions that changed, refused or warned about something. */
export class RecordedDecisions {
  readonly #now: () => number;
  readonly #kept: RecordedDecision[] = [];
  /** A reader notices by it that this server started again. */
  readonly #instance = randomUUID();
  #last = 0;

  constructor(now: () => number) {
    this.#now = now;
  }

  add(evaluation: Evaluation): void {
    const decision = recordedDecision(evaluation, this.#last + 1, this.#now());
    if (decision.verdict === "allowed") return;
    this.#last += 1;
    this.#kept.push(decision);
    if (this.#kept.length > MOST_RECORDED) this.#kept.shift();
  }

  /** Those after a number, as JSON. */
  after(number: number): string {
    const decisions = this.#kept.filter((one) => one.number > number);
    return `${JSON.stringify({ instance: this.#instance, decisions })}\n`;
  }
}

/** A decision without the object itself: only its name, and what was found. */
function recordedDecision(
  { request, denials, findings, patched }: Evaluation,
  number: number,
  now: number,
): RecordedDecision {
  const reported = findings.filter(({ outcome }) => outcome !== "same" && outcome !== "authorized");
  const isRefused = denials.length > 0;
  const isWarned = findings.some(({ warn, outcome }) => warn !== undefined || outcome === "would-violate");
  const lines = isRefused ? denials.map(({ message }) => message ?? "") : reported.map(messageWithCode);
  return {
    number,
    time: new Date(now).toISOString(),
    verdict: isRefused ? "refused" : patched.size > 0 ? "changed" : isWarned ? "warned" : "allowed",
    operation: request.operation,
    object: {
      kind: cut(request.kind.kind),
      namespace: cut(request.namespace),
      name: cut(request.name || (stringAt(request.object, "metadata", "generateName") ?? "")),
    },
    user: cut(request.userInfo.username),
    policies: [
      ...new Set(findings.flatMap(({ policy }) => (policy === undefined ? [] : [cut(policyKey(policy))]))),
    ].slice(0, MOST_LINES),
    lines: lines.slice(0, MOST_LINES).map(cut),
  };
}

function cut(text: string): string {
  return text.length > LENGTH ? `${text.slice(0, LENGTH)}…` : text;
}
