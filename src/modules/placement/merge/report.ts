import type { Finding, FindingEvent, PolicyRef } from "../../../core/evaluate/finding.ts";
import { policyName } from "../../../core/evaluate/finding.ts";
import type { Json } from "../../../core/json.ts";
import type { Path } from "../../../core/path.ts";
import type { Field } from "../criteria/criteria.ts";
import type { PlacementRequest, Target } from "./merge.ts";

/** One place that a wish is about. */
export interface Place {
  /** The field, as users write it. */
  readonly rule: string;
  readonly path: Path;
}

/** Warnings about what was left out by choice come after those about what could not be done. */
const WARN_SKIPPED = 60;
const WARN_FAILED = 80;

/** The finding of an edit. `text` says what is there now: `nodeSelector zone=a`. */
export function applied(wish: PlacementRequest, { rule, path }: Place, text: string, was: boolean): Finding {
  const policy = wish.ref;
  // What was taken out to be put in again is no change.
  if (was) return { policy, rule, path, outcome: "same", message: `${text} is there already` };
  if (wish.restoring)
    return { policy, rule: "restore", path, outcome: "applied", message: `${text} put back` };
  const event = about(policy, "Normal", "PlacementApplied");
  return { policy, rule, path, outcome: "applied", message: text, event };
}

/** That the object says so already. Of what is only restored nobody needs to hear that. */
export function same(
  wish: PlacementRequest,
  { rule, path }: Place,
  text: string,
  findings: Finding[],
  element?: Json,
): void {
  if (wish.restoring) return;
  const message = `${text} is there already`;
  const elements = element === undefined ? {} : { elements: [element] };
  findings.push({ policy: wish.ref, rule, path, outcome: "same", ...elements, message });
}

/**
 * That the policy can't have its way because something else is said already. `said` tells both sides; what follows is the policy's
 * choice. What the user sets himself is not put back, without a word.
 */
export function conflict(
  wish: PlacementRequest,
  { rule, path }: Place,
  code: string,
  said: string,
  findings: Finding[],
): void {
  if (wish.restoring) return;
  const common = { policy: wish.ref, rule, path, code };
  const event = about(
    wish.ref,
    "Warning",
    wish.onConflict === "Refuse" ? "PlacementRefused" : "PlacementSkipped",
  );
  if (wish.onConflict === "Refuse")
    findings.push({ ...common, outcome: "violated", message: `${said}; the policy refuses that`, event });
  else
    findings.push({
      ...common,
      outcome: "skipped",
      message: `${said}; the first stays`,
      warn: WARN_SKIPPED,
      event,
    });
}

/** That a part was left out though nobody says otherwise. */
export function leftOut(
  wish: PlacementRequest,
  { rule, path }: Place,
  code: string,
  message: string,
  findings: Finding[],
): void {
  const event = about(wish.ref, "Warning", "PlacementSkipped");
  findings.push({
    policy: wish.ref,
    rule,
    path,
    code,
    outcome: "skipped",
    message,
    warn: WARN_SKIPPED,
    event,
  });
}

/** That a part could not be done. Where the policy fails closed this refuses; but what was let in once is never refused for it. */
export function failed(
  wish: PlacementRequest,
  { rule, path }: Place,
  code: string | undefined,
  message: string,
  findings: Finding[],
): void {
  const common = { policy: wish.ref, rule, path, ...(code === undefined ? {} : { code }), message };
  if (wish.failure === "Fail" && !wish.restoring) findings.push({ ...common, outcome: "violated" });
  else findings.push({ ...common, outcome: "failed", warn: WARN_FAILED });
}

/** That nothing of a policy was merged, since those before it took all the work that is done for one object. */
export function reportBudgetExceeded({ spec }: Target, wish: PlacementRequest, findings: Finding[]): void {
  const message = `policy ${policyName(wish.ref)} is left out: those before it are more work than usher does for one object; use fewer policies here, with fewer terms and elements`;
  failed(wish, { rule: "criteria", path: spec }, "USHER-P12", message, findings);
}

/** The same where it came upon that in one field. */
export function reportTooMuchWork(
  wish: PlacementRequest,
  place: Place,
  what: string,
  findings: Finding[],
): void {
  const message = `${what} of policy ${policyName(wish.ref)} is left out: with the policies before it this is more work than usher does for one object; use fewer policies here, with fewer terms and elements`;
  failed(wish, place, "USHER-P12", message, findings);
}

/** That the object is of another shape than any that an API server sends. Nobody is refused for that, whatever the policy says. */
export function unwritable(wish: PlacementRequest, place: Place, message: string, findings: Finding[]): void {
  failed({ ...wish, failure: "Ignore" }, place, undefined, message, findings);
}

/** Whether the API server takes this field here no more; said, where it is so. What the stored object has it takes. */
export function closed(
  target: Target,
  wish: PlacementRequest,
  field: Field,
  place: Place,
  findings: Finding[],
): boolean {
  const why = wish.restoring ? undefined : target.limits[field];
  if (why === undefined) return false;
  const message = `${place.rule} of policy ${policyName(wish.ref)} is left out: ${why}`;
  leftOut(wish, place, "USHER-P13", message, findings);
  return true;
}

/** Who said first what is there now. */
export function holderOf(target: Target, place: string): string {
  const ref = target.holders.get(place);
  return ref === undefined ? "the pod" : `policy ${policyName(ref)}`;
}

/** Events are about the policy: the object may not even have its name yet, and whoever wrote the policy looks there. */
function about(
  { kind, namespace, name }: PolicyRef,
  type: FindingEvent["type"],
  reason: string,
): FindingEvent {
  return { type, reason, regarding: { kind, ...(namespace === undefined ? {} : { namespace }), name } };
}
