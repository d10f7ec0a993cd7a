import { randomBytes, timingSafeEqual } from "node:crypto";
import { PATH_TOKEN } from "../../admission/review/routes.ts";
import { at, type Json, listAt, stringAt } from "../../core/json.ts";

/**
 * The unguessable first segment of the webhooks' paths. A review with it comes from an API server, from a client that
 * may read the webhook configurations or usher's Secret, or from one that saw a call fail: the API server's error
 * quotes the URL. So it is not proof of identity, and it is replaced once it may have been exposed.
 */
export interface PathTokens {
  /** The token that the webhook configurations name. */
  readonly current: string;
  /** The next one. Known before, so that every replica accepts it by then. */
  readonly next: string;
  /** Earlier ones, the latest first: an API server may still use them. */
  readonly retired: readonly RetiredToken[];
  /** Milliseconds since 1970, by the API server's clock. */
  readonly rotatedAt: number;
}

export interface RetiredToken {
  readonly token: string;
  /** Accepted until then, in milliseconds since 1970 by the API server's clock. */
  readonly until: number;
}

/** A period must be far longer than a replica takes to read the Secret (3 s) and an API server to notice that it lost its watch (a minute). */
export const ROTATE_EVERY_MS = 15 * 60_000;

/** Exposed tokens are replaced at this interval at most: tenants can make calls fail, and each replacement is three writes. */
export const REPLACE_EVERY_MS = 60_000;

/**
 * How long API servers may take to see changed webhook configurations. They watch them, mostly within a second; one
 * that has lost its watch notices within a minute.
 */
export const TRUST_MS = 120_000;

/** 160 bits, in letters that the API server accepts in a path segment: those of a DNS label. */
export function makeToken(): string {
  return randomBytes(20).toString("hex");
}

/** The tokens that are due now, or `undefined` if the current ones stay. `shown`: a client may have seen the current one. */
export function tokensDue(
  tokens: PathTokens | undefined,
  now: number,
  shown: boolean,
): PathTokens | undefined {
  if (tokens === undefined) return rotated(tokens, now);
  const age = now - tokens.rotatedAt;
  // Also if the last rotation is in the future: by a clock that was wrong then, or is now.
  const isOver = (periodMs: number) => age >= periodMs || age < -periodMs;
  if (shown && isOver(REPLACE_EVERY_MS)) return rotated(tokens, now, TRUST_MS);
  return isOver(ROTATE_EVERY_MS) ? rotated(tokens, now) : undefined;
}

/** The tokens after `tokens`, or the first ones. Earlier ones are accepted for `acceptMs` at most. */
export function rotated(
  tokens: PathTokens | undefined,
  now: number,
  acceptMs: number = ROTATE_EVERY_MS,
): PathTokens {
  const before =
    tokens === undefined ? [] : [{ token: tokens.current, until: now + acceptMs }, ...tokens.retired];
  return {
    current: tokens?.next ?? makeToken(),
    next: makeToken(),
    retired: before
      .filter(({ until }) => until > now)
      .map(({ token, until }) => ({ token, until: Math.min(until, now + acceptMs) })),
    rotatedAt: now,
  };
}

/** `now` is the API server's. */
export function acceptsToken(
  tokens: PathTokens | undefined,
  token: string | undefined,
  now: number,
): boolean {
  if (tokens === undefined) return false;
  const retired = tokens.retired.filter(({ until }) => now < until);
  return isOneOf([tokens.current, tokens.next, ...retired.map((one) => one.token)], token);
}

/** All are compared, in constant time, so that timing reveals nothing. */
export function isOneOf(tokens: Iterable<string | undefined>, token: string | undefined): boolean {
  if (token === undefined) return false;
  const given = Buffer.from(token);
  let accepted = false;
  for (const one of tokens) {
    if (one === undefined) continue;
    const known = Buffer.from(one);
    if (known.length === given.length && timingSafeEqual(known, given)) accepted = true;
  }
  return accepted;
}

/** The text form in the Secret and the annotation. Replicas of an older version know one retired token, by the name `previous`. */
export function tokensText({ retired, ...tokens }: PathTokens): string {
  return JSON.stringify({ ...tokens, previous: retired[0]?.token, retired });
}

/** Parses the output of `tokensText`; `undefined` for anything else. */
export function parseTokens(text: string | undefined): PathTokens | undefined {
  let json: Json;
  try {
    json = JSON.parse(text ?? "") as Json;
  } catch {
    return undefined;
  }
  const token = (value: string | undefined) =>
    value !== undefined && PATH_TOKEN.test(value) ? value : undefined;
  const [current, next, previous] = ["current", "next", "previous"].map((key) => token(stringAt(json, key)));
  const rotatedAt = at(json, "rotatedAt");
  if (current === undefined || next === undefined || typeof rotatedAt !== "number") return undefined;
  if (at(json, "retired") === undefined) {
    const until = rotatedAt + ROTATE_EVERY_MS;
    return { current, next, retired: previous === undefined ? [] : [{ token: previous, until }], rotatedAt };
  }
  const retired = listAt(json, "retired").flatMap((one) => {
    const [given, until] = [token(stringAt(one, "token")), at(one, "until")];
    return given === undefined || typeof until !== "number" ? [] : [{ token: given, until }];
  });
  return { current, next, retired, rotatedAt };
}
