import type { JsonObject } from "../json.ts";
import { joinLines, MESSAGE_LENGTH, truncate } from "./bounds.ts";
import { type Finding, messageWithCode } from "./finding.ts";
import type { Need } from "./need.ts";
import type { StatusDetails } from "./status.ts";

/** The reason of a denial: the client gets it as a Status. */
export interface Denial {
  /** HTTP code; one below 400 would reach the client as 400. */
  readonly code: number;
  /** A StatusReason such as `Forbidden`. */
  readonly reason: string;
  readonly message: string;
  /** With 429: how long the client should wait. */
  readonly retryAfterSeconds?: number;
  /** @default the object of the request */
  readonly details?: Partial<StatusDetails>;
}

/**
 * One write that must succeed before "allow" is sent. It carries the resourceVersion of the fact that it is based on;
 * on a conflict the fact is read and everything is evaluated again.
 */
export interface Commit {
  readonly resource: string;
  readonly namespace?: string;
  readonly name: string;
  readonly object: JsonObject;
  /** `undefined`: the object must not exist yet. */
  readonly resourceVersion: string | undefined;
  /** The need whose fact this write rests on. */
  readonly rests: Need;
}

/** A step of a counter. */
export interface Count {
  readonly metric: string;
  readonly labels: Readonly<Record<string, string>>;
  /** @default 1 */
  readonly by?: number;
}

// A decision can only be created by the functions below, so that each is complete.
const decided: unique symbol = Symbol("decided");

export interface Decision {
  readonly [decided]: true;
  readonly denial: Denial | undefined;
  readonly findings: readonly Finding[];
  readonly commit: Commit | undefined;
  /** Increments of counters that the module declares, made after the response; none on a dry run. */
  readonly counts: readonly Count[];
}

export interface NeedMore {
  readonly need: readonly Need[];
}

export type Result = Decision | NeedMore;

const NO_COUNTS: readonly Count[] = [];

export function allow(
  findings: readonly Finding[] = [],
  commit?: Commit,
  counts: readonly Count[] = NO_COUNTS,
): Decision {
  return { [decided]: true, denial: undefined, findings, commit, counts };
}

/** Without a message, those of the violations are the message, a line each. It is bounded: hundreds of policies may refuse one object. */
export function deny(
  denial: Omit<Denial, "message"> & { readonly message?: string },
  findings: readonly Finding[],
  counts: readonly Count[] = NO_COUNTS,
): Decision {
  const lines = findings
    .filter((finding) => finding.outcome === "violated" || finding.outcome === "failed")
    .map(messageWithCode);
  const message = denial.message === undefined ? joinLines(lines) : truncate(denial.message, MESSAGE_LENGTH);
  return { [decided]: true, denial: { ...denial, message }, findings, commit: undefined, counts };
}

export function need(...needs: readonly Need[]): NeedMore {
  return { need: needs };
}
