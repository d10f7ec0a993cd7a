import { expect, test } from "vitest";
import { acceptsToken, parseTokens, rotated } from "./path-tokens.ts";

test("a token is accepted a period before it is published, while it is, and one period after", () => {
  const first = rotated(undefined, 0);
  const second = rotated(first, 1);
  const third = rotated(second, 2);
  const fourth = rotated(third, 3);
  const token = second.next;
  expect([second.current, third.current, fourth.previous]).toEqual([first.next, token, token]);
  expect([first, second, third, fourth, rotated(fourth, 4)].map((one) => acceptsToken(one, token))).toEqual([
    false,
    true,
    true,
    true,
    false,
  ]);
});

test("tokens are path segments for the API server, and no two are alike", () => {
  let tokens = rotated(undefined, 0);
  const seen = new Set<string>();
  for (let i = 1; i < 100; i++) {
    expect(tokens.current).toMatch(/^[0-9a-f]{40}$/);
    seen.add(tokens.current);
    tokens = rotated(tokens, i);
  }
  expect(seen.size).toBe(99);
});

test.each([undefined, "", "x", "0".repeat(40), "0".repeat(39), "\u{1f600}".repeat(10)])(
  "%j is not accepted",
  (token) => {
    expect(acceptsToken(rotated(undefined, 0), token)).toBe(false);
    expect(acceptsToken(undefined, token)).toBe(false);
  },
);

test("an absent previous token does not let an empty one in", () => {
  expect(acceptsToken(rotated(undefined, 0), "")).toBe(false);
});

test("tokens survive the Secret, and what is not tokens is none", () => {
  const tokens = rotated(rotated(undefined, 1), 2);
  expect(parseTokens(JSON.stringify(tokens))).toEqual(tokens);
  const broken = [undefined, "", "null", "[]", "{", "{}", JSON.stringify({ ...tokens, current: "a" })];
  for (const text of [...broken, JSON.stringify({ ...tokens, rotatedAt: "1" })])
    expect(parseTokens(text), text).toBeUndefined();
  expect(parseTokens(JSON.stringify({ ...tokens, previous: "../x" }))?.previous).toBeUndefined();
});
