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
  readonly verdict: "refused" | "changed" | "warned";
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

/** The parts of an evaluation that a reader may ask for. The object is not among them. */
interface Kept extends Pick<Evaluation, "denials" | "findings"> {
  readonly number: number;
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly verdict: RecordedDecision["verdict"];
  readonly operation: string;
  readonly object: RecordedDecision["object"];
  readonly user: string;
}

/** The last decisions that changed, refused or warned about something. Formatted when they are read: most servers have no reader. */
export class RecordedDecisions {
  readonly #now: () => number;
  readonly #kept: Kept[] = [];
  /** A reader notices by it that this server started again. */
  readonly #instance = randomUUID();
  #last = 0;

  constructor(now: () => number) {
    this.#now = now;
  }

  add(evaluation: Evaluation): void {
    const verdict = verdictOf(evaluation);
    if (verdict === undefined) return;
    const { request, denials, findings } = evaluation;
    const { operation, kind, namespace, name, userInfo } = request;
    this.#last += 1;
    this.#kept.push({
      number: this.#last,
      at: this.#now(),
      verdict,
      operation,
      object: {
        kind: kind.kind,
        namespace,
        name: name || (stringAt(request.object, "metadata", "generateName") ?? ""),
      },
      user: userInfo.username,
      denials,
      findings,
    });
    if (this.#kept.length > MOST_RECORDED) this.#kept.shift();
  }

  /** Those after a number, as JSON. */
  after(number: number): string {
    const decisions = this.#kept.filter((one) => one.number > number).map(recordedDecision);
    return `${JSON.stringify({ instance: this.#instance, decisions })}\n`;
  }
}

/** Undefined for an object that is allowed as it is. */
function verdictOf({ denials, findings, patched }: Evaluation): RecordedDecision["verdict"] | undefined {
  if (denials.length > 0) return "refused";
  if (patched.size > 0) return "changed";
  const isWarned = findings.some(({ warn, outcome }) => warn !== undefined || outcome === "would-violate");
  return isWarned ? "warned" : undefined;
}

function recordedDecision({ at, object, user, denials, findings, ...kept }: Kept): RecordedDecision {
  const reported = findings.filter(({ outcome }) => outcome !== "same" && outcome !== "authorized");
  const lines =
    denials.length > 0 ? denials.map(({ message }) => message ?? "") : reported.map(messageWithCode);
  const policies = new Set(
    findings.flatMap(({ policy }) => (policy === undefined ? [] : [policyKey(policy)])),
  );
  return {
    ...kept,
    time: new Date(at).toISOString(),
    object: { kind: cut(object.kind), namespace: cut(object.namespace), name: cut(object.name) },
    user: cut(user),
    policies: [...policies].slice(0, MOST_LINES).map(cut),
    lines: lines.slice(0, MOST_LINES).map(cut),
  };
}

function cut(text: string): string {
  return text.length > LENGTH ? `${text.slice(0, LENGTH)}…` : text;
}
