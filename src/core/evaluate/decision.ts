import type { JsonObject } from "../json.ts";
import type { Finding } from "./finding.ts";
import type { Need } from "./need.ts";

/** A refusal: what the client gets as a Status. */
export interface Denial {
  /** HTTP code; one below 400 would reach the client as 400. */
  readonly code: number;
  /** A StatusReason such as `Forbidden`. */
  readonly reason: string;
  readonly message: string;
  /** With 429: how long the client should wait. */
  readonly retryAfterSeconds?: number;
}

/**
 * One write that must succeed before "allow" is sent. It carries the version of the fact that it rests on; where that has
 * moved on, the fact is read and all is evaluated again.
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

// A decision can only be made by the functions below, so a module can't forget what belongs to one.
const decided: unique symbol = Symbol("decided");

export interface Decision {
  readonly [decided]: true;
  readonly denial: Denial | undefined;
  readonly findings: readonly Finding[];
  readonly commit: Commit | undefined;
}

export interface NeedMore {
  readonly need: readonly Need[];
}

export type Result = Decision | NeedMore;

export function allow(findings: readonly Finding[] = [], commit?: Commit): Decision {
  return { [decided]: true, denial: undefined, findings, commit };
}

/** A refusal. Without a message, the violations' own sentences are the message, a line each. */
export function deny(
  denial: Omit<Denial, "message"> & { readonly message?: string },
  findings: readonly Finding[],
): Decision {
  const message =
    denial.message ??
    findings
      .filter((finding) => finding.outcome === "violated" || finding.outcome === "failed")
      .map((finding) =>
        finding.code === undefined ? finding.message : `${finding.message} (${finding.code})`,
      )
      .join("\n");
  return { [decided]: true, denial: { ...denial, message }, findings, commit: undefined };
}

export function need(...needs: readonly Need[]): NeedMore {
  return { need: needs };
}
