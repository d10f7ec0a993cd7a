import { expect, test } from "vitest";
import { ask, atOnce } from "../../../test/builders/evaluation.ts";
import { moduleThat } from "../../../test/builders/module.ts";
import { pod } from "../../../test/builders/pod.ts";
import { requestFor } from "../../../test/builders/request.ts";
import { responseOf, reviewText } from "../evaluate/response.ts";
import { joinLines, LINE_LENGTH, MESSAGE_LENGTH, truncate } from "./bounds.ts";
import { deny } from "./decision.ts";
import type { Finding } from "./finding.ts";

test("strings are cut visibly, and never within a character", () => {
  expect(truncate("abc", 3)).toBe("abc");
  expect(truncate("abcd", 3)).toBe("ab…");
  expect(truncate("a😀b", 3)).toBe("a\ufffd…");
});

test.each<[string, string[], string]>([
  ["nothing", [], ""],
  ["what fits", ["one", "two"], "one\ntwo"],
  ["one long line is kept", ["x".repeat(MESSAGE_LENGTH)], "x".repeat(MESSAGE_LENGTH)],
  ["a long line among others is cut", ["a", "x".repeat(2_000)], `a\n${"x".repeat(LINE_LENGTH - 1)}…`],
  [
    "lines that do not fit are counted",
    Array.from({ length: 200 }, () => "x".repeat(LINE_LENGTH)),
    `${Array.from({ length: 8 }, () => "x".repeat(LINE_LENGTH)).join("\n")}\nand 192 more`,
  ],
])("joins lines: %s", (_, lines, message) => expect(joinLines(lines)).toBe(message));

const violations = (count: number, length: number): Finding[] =>
  Array.from({ length: count }, (_, i) => ({
    policy: { kind: "Policy", name: `p${i}` },
    rule: "rule",
    outcome: "violated",
    code: "USHER-T01",
    path: ["spec", "k".repeat(length)],
    message: `policy ${i} requires ${"x".repeat(length)}`,
    audit: { key: "refused", value: `p${i}` },
  }));

function refusalBy(findings: Finding[], message?: string) {
  const denial = { code: 403, reason: "Forbidden", ...(message === undefined ? {} : { message }) };
  const module = moduleThat("m", { validate: () => deny(denial, findings) });
  const request = requestFor(pod({ name: "n".repeat(100_000) }));
  return responseOf(atOnce(ask([module], request, undefined, { phase: "validate" })));
}

test("the refusal of 200 policies of 5,000 characters each stays below 64 KiB", () => {
  const answer = refusalBy(violations(200, 5_000));
  expect(reviewText(answer).length).toBeLessThan(65_536);
  expect(answer.status?.message).toMatch(/^policy 0 requires x+…\n(?:.+\n){7}and 192 more$/);
  expect(answer.status?.causes.length).toBeGreaterThan(20);
  expect(answer.status?.causes[0]).toMatchObject({
    reason: "USHER-T01",
    message: expect.stringMatching(/^Policy\/p0: policy 0 requires x+…$/),
  });
});

test("a refusal whose message a module wrote stays below 64 KiB", () => {
  const answer = refusalBy(violations(1, 10), "x".repeat(1_000_000));
  expect(reviewText(answer).length).toBeLessThan(16_384);
});

test("a few violations of a usual length are all shown", () => {
  const { status } = refusalBy(violations(30, 100));
  expect(status?.message.split("\n")).toHaveLength(30);
  expect(status?.causes).toHaveLength(30);
});
