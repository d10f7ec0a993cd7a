import fc from "fast-check";
import { expect, test } from "vitest";
import {
  acceptsToken,
  type PathTokens,
  parseTokens,
  REPLACE_EVERY_MS,
  ROTATE_EVERY_MS,
  rotated,
  TRUST_MS,
  tokensDue,
  tokensText,
} from "./path-tokens.ts";

test("a token is accepted a period before it is published, while it is, and one period after", () => {
  const period = ROTATE_EVERY_MS;
  const first = rotated(undefined, 0);
  const second = rotated(first, period);
  const third = rotated(second, 2 * period);
  const fourth = rotated(third, 3 * period);
  const token = second.next;
  expect([second.current, third.current, fourth.retired[0]?.token]).toEqual([first.next, token, token]);
  const all = [first, second, third, fourth, rotated(fourth, 4 * period)];
  expect(all.map((one, i) => acceptsToken(one, token, i * period))).toEqual([false, true, true, true, false]);
});

test("tokens are valid path segments for the API server, and unique", () => {
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
    expect(acceptsToken(rotated(undefined, 0), token, 0)).toBe(false);
    expect(acceptsToken(undefined, token, 0)).toBe(false);
  },
);

test("tokens survive the Secret, and invalid text is ignored", () => {
  const tokens = rotated(rotated(undefined, 1), 2);
  const text = tokensText(tokens);
  expect(parseTokens(text)).toEqual(tokens);
  const broken = [undefined, "", "null", "[]", "{", "{}", JSON.stringify({ ...tokens, current: "a" })];
  for (const one of [...broken, JSON.stringify({ ...tokens, rotatedAt: "1" })])
    expect(parseTokens(one), one).toBeUndefined();
  const [retired] = tokens.retired;
  for (const one of [{ ...retired, token: "../x" }, { ...retired, until: "9" }, "x", null])
    expect(parseTokens(JSON.stringify({ ...tokens, retired: [one] }))?.retired).toEqual([]);
});

test("one retired token is shared with replicas of an older version, both ways", () => {
  const tokens = rotated(rotated(undefined, 1), 2);
  const { retired, ...older } = JSON.parse(tokensText(tokens));
  expect(older.previous).toBe(retired[0].token);
  expect(parseTokens(JSON.stringify(older))).toEqual(tokens);
});

interface Seen {
  readonly token: string;
  /** The time until which it was published. */
  until: number;
}

test("for any exposure: no API server's token is refused, and an exposed one is not accepted for long", () => {
  const step = fc.record({ ms: fc.integer({ min: 1, max: 200_000 }), shown: fc.boolean() });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      let now = 1_000_000;
      let tokens: PathTokens = rotated(undefined, now);
      let shownAt: number | undefined;
      const published: Seen[] = [{ token: tokens.current, until: Number.POSITIVE_INFINITY }];
      const shownTokens = new Map<string, number>();
      // A leader that reconciles every three seconds.
      const passes = (ms: number) => {
        for (const end = now + ms; now < end; ) {
          now = Math.min(end, now + 3_000);
          const next = tokensDue(tokens, now, shownAt === tokens.rotatedAt);
          if (next === undefined) continue;
          expect(now - tokens.rotatedAt).toBeGreaterThanOrEqual(REPLACE_EVERY_MS);
          // Replicas that have not read it yet know the currently published token.
          expect(acceptsToken(tokens, next.current, now)).toBe(true);
          const last = published.at(-1);
          if (last !== undefined) last.until = now;
          published.push({ token: next.current, until: Number.POSITIVE_INFINITY });
          tokens = next;
        }
      };
      for (const { ms, shown } of steps) {
        passes(ms);
        if (shown) {
          shownAt = tokens.rotatedAt;
          if (!shownTokens.has(tokens.current)) shownTokens.set(tokens.current, now);
        }
        for (const { token, until } of published)
          if (now < until + TRUST_MS) expect(acceptsToken(tokens, token, now)).toBe(true);
        for (const [token, at] of shownTokens)
          if (now >= at + REPLACE_EVERY_MS + 3_000 + TRUST_MS)
            expect(acceptsToken(tokens, token, now)).toBe(false);
        expect(tokens.retired.length).toBeLessThanOrEqual(3);
      }
    }),
  );
});
