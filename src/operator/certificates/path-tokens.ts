import { randomBytes, timingSafeEqual } from "node:crypto";
import { PATH_TOKEN } from "../../admission/review/routes.ts";
import { at, type Json, stringAt } from "../../core/json.ts";

/**
 * The unguessable first segment of the webhooks' paths. Only the webhook configurations and usher's Secret have it, so a review that
 * comes with it comes from an API server, or from a client that may read one of them.
 */
export interface PathTokens {
  /** What the webhook configurations name. */
  readonly current: string;
  /** What they will name next. Known a whole period before, so that every replica accepts it by then. */
  readonly next: string;
  /** What they named before: an API server may still use it. */
  readonly previous: string | undefined;
  /** Milliseconds since 1970, by the API server's clock. */
  readonly rotatedAt: number;
}

/**
 * The API server quotes the URL to the user when a fail-closed webhook can't be called, so a token does not stay secret. One that was
 * shown is accepted for two periods at most. A period must be far longer than a replica takes to read the Secret (3 s) and an API server
 * to notice that it lost its watch (a minute).
 */
export const ROTATE_EVERY_MS = 15 * 60_000;

/** 160 bits, in letters that the API server accepts in a path segment: those of a DNS label. */
export function makeToken(): string {
  return randomBytes(20).toString("hex");
}

/** The tokens after `tokens`, or the first ones. */
export function rotated(tokens: PathTokens | undefined, now: number): PathTokens {
  return {
    current: tokens?.next ?? makeToken(),
    next: makeToken(),
    previous: tokens?.current,
    rotatedAt: now,
  };
}

/** Also where the time of the last rotation lies ahead: by a clock that was wrong then, or is now. */
export function isRotationDue({ rotatedAt }: PathTokens, now: number): boolean {
  return now - rotatedAt >= ROTATE_EVERY_MS || rotatedAt > now + ROTATE_EVERY_MS;
}

export function acceptsToken(tokens: PathTokens | undefined, token: string | undefined): boolean {
  if (tokens === undefined) return false;
  return isOneOf([tokens.current, tokens.next, tokens.previous], token);
}

/** All are compared, and in constant time, so that the time of an answer says nothing. */
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

/** As the Secret holds them; `undefined` where it does not. */
export function parseTokens(text: string | undefined): PathTokens | undefined {
  let json: Json;
  try {
    json = JSON.parse(text ?? "") as Json;
  } catch {
    return undefined;
  }
  const token = (key: string) => {
    const value = stringAt(json, key) ?? "";
    return PATH_TOKEN.test(value) ? value : undefined;
  };
  const [current, next, previous] = [token("current"), token("next"), token("previous")];
  const rotatedAt = at(json, "rotatedAt");
  if (current === undefined || next === undefined || typeof rotatedAt !== "number") return undefined;
  return { current, next, previous, rotatedAt };
}
