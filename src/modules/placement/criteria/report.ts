import type { Finding, FindingEvent } from "../../../core/decision/finding.ts";
import type { Json } from "../../../core/json.ts";
import type { Path } from "../../../core/path.ts";
import type { PolicyRef } from "../../../core/policy/policy-ref.ts";
import { policyName } from "../../../core/policy/policy-ref.ts";
import type { MergeContext, PlacementRequest } from "./context.ts";

/** Warnings about deliberate omissions come after those about failures. */
const WARN_SKIPPED = 60;
const WARN_FAILED = 80;

/** Two values for one place. */
export interface Sides {
  /** `nodeSelector zone` */
  readonly field: string;
  /** The place whose holder is named. */
  readonly holder: string;
  /** Kept. */
  readonly has: string;
  readonly wants: string;
}

/** The result of one criterion of one placement request, as findings in one wording. */
export class Report {
  readonly request: PlacementRequest;
  readonly #target: MergeContext;
  readonly #rule: string;
  readonly #name: string;
  readonly #findings: Finding[];

  constructor(
    target: MergeContext,
    request: PlacementRequest,
    { rule, name }: { readonly rule: string; readonly name: string },
    findings: Finding[],
  ) {
    this.#target = target;
    this.request = request;
    this.#rule = rule;
    this.#name = name;
    this.#findings = findings;
  }

  get restoring(): boolean {
    return this.request.restoring;
  }

  get policy(): string {
    return `policy ${policyName(this.request.ref)}`;
  }

  /** The finding of an edit. `text` describes the new value: `nodeSelector zone=a`. */
  applied(path: Path, text: string, was: boolean): Finding {
    const { ref: policy, restoring } = this.request;
    const rule = this.#rule;
    // A value that was removed to be rewritten is not a change.
    if (was) return { policy, rule, path, outcome: "same", message: `${text} already present` };
    if (restoring) return { policy, rule: "restore", path, outcome: "applied", message: `${text} restored` };
    const event = eventAbout(policy, "Normal", "PlacementApplied");
    return { policy, rule, path, outcome: "applied", message: text, event };
  }

  /** The object already has it. Not reported for a restore. */
  same(path: Path, text: string, elements?: readonly Json[]): void {
    const { ref: policy, restoring } = this.request;
    if (restoring) return;
    const message = `${text} already present`;
    const added = elements === undefined ? {} : { elements };
    this.#findings.push({ policy, rule: this.#rule, path, outcome: "same", ...added, message });
  }

  /** The object, or an earlier policy, has another value, which is kept. */
  conflict(path: Path, code: string, { field, holder, has, wants }: Sides): void {
    const owner = this.holderOf(holder);
    this.#conflict(
      path,
      code,
      this.request.onConflict === "Refuse"
        ? `${field}: ${owner} has ${has}; ${this.policy} wants ${wants} and refuses conflicts`
        : `${field}: kept ${owner}'s value ${has}; ${this.policy} wants ${wants}`,
    );
  }

  /**
   * No node can match the policy's part and the existing one. Restoring it would make a schedulable pod unschedulable,
   * so that is reported too.
   */
  contradiction(path: Path, text: string): void {
    const code = "USHER-P11";
    if (this.restoring) this.skipped(path, code, `${text}; not restored`);
    else
      this.#conflict(
        path,
        code,
        this.request.onConflict === "Refuse" ? `${text}; the policy refuses conflicts` : `${text}; skipped`,
      );
  }

  /** A value that the user sets is not restored, without a finding. */
  #conflict(path: Path, code: string, message: string): void {
    const { ref: policy, onConflict, restoring } = this.request;
    if (restoring) return;
    const common = { policy, rule: this.#rule, path, code, message };
    if (onConflict === "Refuse")
      this.#findings.push({
        ...common,
        outcome: "violated",
        event: eventAbout(policy, "Warning", "PlacementRefused"),
      });
    else
      this.#findings.push({
        ...common,
        outcome: "skipped",
        warn: WARN_SKIPPED,
        event: eventAbout(policy, "Warning", "PlacementSkipped"),
      });
  }

  /** A part was left out although nothing conflicts with it. */
  skipped(path: Path, code: string, message: string): void {
    const { ref: policy } = this.request;
    this.#findings.push({
      policy,
      rule: this.#rule,
      path,
      code,
      outcome: "skipped",
      message,
      warn: WARN_SKIPPED,
      event: eventAbout(policy, "Warning", "PlacementSkipped"),
    });
  }

  /** A part could not be applied. A fail-closed policy refuses; but an already admitted object is never refused for a restore. */
  failed(path: Path, code: string, message: string): void {
    const { ref: policy, failure, restoring } = this.request;
    const common = { policy, rule: this.#rule, path, code, message };
    if (failure === "Fail" && !restoring) this.#findings.push({ ...common, outcome: "violated" });
    else this.#findings.push({ ...common, outcome: "failed", warn: WARN_FAILED });
  }

  /** The object has a shape that no API server sends. Never a reason to refuse it, for any policy. */
  unwritable(path: Path, message: string): void {
    const { ref: policy } = this.request;
    this.#findings.push({ policy, rule: this.#rule, path, message, outcome: "failed", warn: WARN_FAILED });
  }

  /** Whether the API server refuses this field on this object; reported if it does. It accepts the stored object's value. */
  immutable(path: Path): boolean {
    const { immutable, impossible } = this.#target.limits;
    const why = this.restoring ? undefined : immutable[this.#name];
    if (why === undefined) return false;
    const code = impossible?.includes(this.#name) ? "USHER-P15" : "USHER-P13";
    this.skipped(path, code, `${this.#rule} of ${this.policy} skipped: ${why}`);
    return true;
  }

  /** The origin of the current value at a path. */
  holderOf(place: string): string {
    const ref = this.#target.holders.get(place);
    return ref === undefined ? "the pod" : `policy ${policyName(ref)}`;
  }
}

/** Nothing of a policy was merged: it does not fit into the work budget beside those before it. */
export function reportBudgetExceeded(
  target: MergeContext,
  request: PlacementRequest,
  findings: Finding[],
): void {
  const message = `policy ${policyName(request.ref)} skipped: with the policies before it, it exceeds the work budget for one object; use fewer policies, with fewer terms and elements`;
  const report = new Report(target, request, { rule: "criteria", name: "" }, findings);
  report.failed(target.spec, "USHER-P12", message);
}

/** Events are about the policy: the object may not even have a name yet, and the policy's author looks there. */
export function eventAbout(
  { kind, namespace, name }: PolicyRef,
  type: FindingEvent["type"],
  reason: string,
): FindingEvent {
  return { type, reason, regarding: { kind, ...(namespace === undefined ? {} : { namespace }), name } };
}
