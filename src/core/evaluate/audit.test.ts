import { expect, test } from "vitest";
import { AUDIT_VALUE_LENGTH, AUDIT_VERBATIM_LENGTH, auditOf } from "./audit.ts";
import type { ModuleFinding } from "./finding.ts";

const audited = (module: string, key: string, value: string): ModuleFinding => ({
  module,
  rule: "r",
  outcome: "failed",
  message: "m",
  audit: { key, value },
});

test("values of one key are joined, each once, in their order", () => {
  const found = [
    audited("a", "unclear", "x"),
    audited("b", "unclear", "z"),
    audited("a", "unclear", "y"),
    audited("a", "unclear", "x"),
    audited("a", "fault", "f"),
    { module: "a", rule: "r", outcome: "same", message: "m" } as const,
  ];
  expect(auditOf(found)).toEqual({ "a.unclear": "x; y", "b.unclear": "z", "a.fault": "f" });
});

test("nothing to say, nothing said", () => {
  expect(auditOf([])).toEqual({});
});

test("a value is cut at its limit, and never in the middle of a character", () => {
  const [value = ""] = Object.values(auditOf([audited("a", "k", `x${"😀".repeat(1_000)}`)]));
  expect(value).toHaveLength(AUDIT_VALUE_LENGTH);
  expect(value.isWellFormed()).toBe(true);
  const exact = "y".repeat(AUDIT_VALUE_LENGTH);
  expect(auditOf([audited("a", "k", exact)])).toEqual({ "a.k": exact });
});

test("thousands of policies for one key", () => {
  const many = Array.from({ length: 20_000 }, (_, i) => audited("a", "k", `policy-${i}`));
  expect(Object.values(auditOf(many))[0]).toHaveLength(AUDIT_VALUE_LENGTH);
});

test("an upstream key has no prefix", () => {
  const enforce = { key: "enforce-policy", value: "restricted:latest", unprefixed: true } as const;
  expect(auditOf([{ ...audited("a", "", ""), audit: enforce }, audited("a", "k", "v")])).toEqual({
    "enforce-policy": "restricted:latest",
    "a.k": "v",
  });
});

test("a verbatim value stays whole, up to what an audit event can hold", () => {
  const whole = "v".repeat(20_000);
  expect(auditOf([{ ...audited("a", "k", whole), verbatim: true }])).toEqual({ "a.k": whole });
  const huge = audited("a", "k", "v".repeat(100_000));
  expect(auditOf([{ ...huge, verbatim: true }])["a.k"]).toHaveLength(AUDIT_VERBATIM_LENGTH);
});

test("one finding may have several", () => {
  const audit = [
    { key: "mode", value: "Enable" },
    { key: "group", value: "g" },
  ];
  expect(auditOf([{ ...audited("a", "", ""), audit }])).toEqual({ "a.mode": "Enable", "a.group": "g" });
});
