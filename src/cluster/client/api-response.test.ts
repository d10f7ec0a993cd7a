import { describe, expect, test } from "vitest";
import { retryAfterMs } from "./api-response.ts";

describe("Retry-After", () => {
  test.each([
    [{ "retry-after": "2" }, {}, 2_000],
    [{}, { details: { retryAfterSeconds: 5 } }, 5_000],
    [{ "retry-after": "999999" }, {}, 60_000],
    [{ "retry-after": "Wed, 21 Oct 2026 07:28:00 GMT" }, {}, undefined],
    [{ "retry-after": "0" }, {}, undefined],
    [{}, undefined, undefined],
  ])("parses %j as %j", (headers, body, expected) => {
    expect(retryAfterMs({ headers: headers as Record<string, string>, body })).toBe(expected);
  });
});
