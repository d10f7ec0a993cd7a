import type { AdmissionRequest } from "../decision/request.ts";
import { copyOf, type JsonObject } from "../json.ts";
import type { ReviewChange, ReviewResult, ReviewViolation } from "../review/result.ts";
import { type Review, reviewWithPods, type Stage } from "../review/review.ts";

/**
 * The result of a second view for a request that a first one has decided.
 *
 * - `same`: the same decision;
 * - `changed`: admitted by both, with other changes;
 * - `warned`: the same, with new warnings;
 * - `refused`: admitted by the first, refused by the second;
 * - `admitted`: refused by the first, admitted by the second;
 * - `still refused`: refused by both, for other reasons;
 * - `new` and `gone`: only one of the two has the object.
 */
export const EFFECTS = [
  "refused",
  "admitted",
  "still refused",
  "changed",
  "warned",
  "new",
  "gone",
  "same",
] as const;
type Effect = (typeof EFFECTS)[number];

/** The decision of one view: the object with its changes, or why it is refused. */
export interface Side {
  readonly refused: boolean;
  /** Of the object, and of a workload those of its pods. */
  readonly violations: readonly ReviewViolation[];
  readonly changes: readonly ReviewChange[];
  readonly warnings: readonly string[];
  /** Needs of the decision that could not be read: it may be another one. */
  readonly unknown: readonly string[];
}

/** One change that only one of both views makes. */
export interface ChangedLine {
  readonly sign: "+" | "-";
  readonly message: string;
  /** The policy; the module for a change without a policy. */
  readonly by: string;
}

/** How the decisions about one object differ; the JSON output is exactly this. */
export interface Difference {
  readonly object: ReviewResult["object"];
  readonly effect: Effect;
  readonly before?: Side;
  readonly after?: Side;
  /** The changes to the object that differ between both worlds. */
  readonly lines: readonly ChangedLine[];
}

/** Both decisions about one request. A side is absent if that view does not have the object. */
export interface Decided {
  readonly before?: Review;
  readonly after?: Review;
}

/** Evaluates requests in two worlds, either of which may be absent. A draft edits in place, so each side has a copy. */
export async function judgeBoth(
  requests: { readonly before?: AdmissionRequest; readonly after?: AdmissionRequest },
  stages: { readonly before: Stage; readonly after: Stage },
  options: { readonly now: number; readonly trace?: boolean },
): Promise<Decided> {
  const { now, trace = false } = options;
  const on = (request: AdmissionRequest, stage: Stage) =>
    reviewWithPods(copyOfRequest(request), stage, { trace, now });
  return {
    ...(requests.before === undefined ? {} : { before: await on(requests.before, stages.before) }),
    ...(requests.after === undefined ? {} : { after: await on(requests.after, stages.after) }),
  };
}

function copyOfRequest(request: AdmissionRequest): AdmissionRequest {
  const { object, oldObject } = request;
  return {
    ...request,
    object: object === undefined ? undefined : (copyOf(object) as JsonObject),
    oldObject: oldObject === undefined ? undefined : (copyOf(oldObject) as JsonObject),
  };
}

/** How two decisions differ. At least one side is there. */
export function differenceOf({ before: first, after: second }: Decided): Difference {
  const before = first === undefined ? undefined : sideOf(first.result);
  const after = second === undefined ? undefined : sideOf(second.result);
  const object = (second ?? first)?.result.object ?? { apiVersion: "", kind: "", namespace: "", name: "" };
  // A refused object is not changed.
  const refused = before?.refused === true || after?.refused === true;
  const lines = refused ? [] : linesBetween(before?.changes ?? [], after?.changes ?? []);
  return {
    object,
    effect: effectOf(before, after, lines),
    ...(before === undefined ? {} : { before }),
    ...(after === undefined ? {} : { after }),
    lines,
  };
}

function sideOf({ verdict, violations, podViolations = [], changes, warnings, unknown }: ReviewResult): Side {
  const all = [...violations, ...podViolations];
  return {
    refused: verdict === "deny" || podViolations.length > 0,
    violations: all,
    changes,
    warnings,
    unknown,
  };
}

function effectOf(before: Side | undefined, after: Side | undefined, lines: readonly ChangedLine[]): Effect {
  if (before === undefined) return "new";
  if (after === undefined) return "gone";
  if (before.refused !== after.refused) return after.refused ? "refused" : "admitted";
  if (after.refused) return reasonsOf(before) === reasonsOf(after) ? "same" : "still refused";
  if (lines.length > 0) return "changed";
  return newWarnings(before, after).length > 0 ? "warned" : "same";
}

function reasonsOf({ violations }: Side): string {
  return JSON.stringify(violations.map(({ policy, code, message }) => [policy, code, message]).sort());
}

/** The warnings of the second decision that the first does not have. */
export function newWarnings(before: Side | undefined, after: Side | undefined): string[] {
  const known = new Set(before?.warnings);
  return (after?.warnings ?? []).filter((text) => !known.has(text));
}

const WORDS = { add: "", change: "", remove: "without " } as const;

/** The same value by another policy is not a change of the object. */
function linesBetween(before: readonly ReviewChange[], after: readonly ReviewChange[]): ChangedLine[] {
  const text = ({ change, message }: ReviewChange) => `${WORDS[change]}${message}`;
  const had = new Set(before.map(text));
  const has = new Set(after.map(text));
  const lineOf = (sign: "+" | "-", one: ReviewChange): ChangedLine => ({
    sign,
    message: text(one),
    by: one.policy === "" ? one.module : one.policy,
  });
  return [
    ...before.filter((one) => !has.has(text(one))).map((one) => lineOf("-", one)),
    ...after.filter((one) => !had.has(text(one))).map((one) => lineOf("+", one)),
  ];
}
