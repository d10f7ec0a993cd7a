import { describe, expect, test } from "vitest";
import type { ModuleFinding } from "../decision/finding.ts";
import { AUDIT_VALUE_LENGTH, AUDIT_VERBATIM_LENGTH, auditOf, refusingPolicies } from "./audit.ts";

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

test("returns no annotations without findings", () => {
  expect(auditOf([])).toEqual({});
});

test("a value is cut at its limit, and never in the middle of a character", () => {
  const [value = ""] = Object.values(auditOf([audited("a", "k", `x${"😀".repeat(1_000)}`)]));
  expect(value).toHaveLength(AUDIT_VALUE_LENGTH);
  expect(value.isWellFormed()).toBe(true);
  const exact = "y".repeat(AUDIT_VALUE_LENGTH);
  expect(auditOf([audited("a", "k", exact)])).toEqual({ "a.k": exact });
});

test("values of thousands of policies for one key stay within the limit", () => {
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

test("a verbatim value stays whole, up to the limit of an audit event", () => {
  const whole = "v".repeat(20_000);
  expect(auditOf([{ ...audited("a", "k", whole), verbatim: true }])).toEqual({ "a.k": whole });
  const huge = audited("a", "k", "v".repeat(100_000));
  expect(auditOf([{ ...huge, verbatim: true }])["a.k"]).toHaveLength(AUDIT_VERBATIM_LENGTH);
});

test("a finding may have several annotations", () => {
  const audit = [
    { key: "mode", value: "Enable" },
    { key: "group", value: "g" },
  ];
  expect(auditOf([{ ...audited("a", "", ""), audit }])).toEqual({ "a.mode": "Enable", "a.group": "g" });
});

describe("a refusal", () => {
  const refused = (over: Partial<ModuleFinding> = {}): ModuleFinding => ({
    module: "a",
    rule: "nodeSelector",
    outcome: "violated",
    code: "USHER-P30",
    message: "no",
    policy: { kind: "ClusterPodSchedulingPolicy", name: "etcd-pool", generation: 7 },
    ...over,
  });

  test("records policy, generation and rule, which can be read back from the audit log", () => {
    const namespaced = { kind: "PodSchedulingPolicy", namespace: "shop", name: "zone" };
    const audit = auditOf([refused(), refused({ policy: namespaced, rule: "tolerations" })], true);
    expect(audit).toEqual({
      "a.refused-by":
        "ClusterPodSchedulingPolicy/etcd-pool@7 nodeSelector USHER-P30; PodSchedulingPolicy/shop/zone tolerations USHER-P30",
    });
    expect(refusingPolicies({ "placement.usher.dev/a.refused-by": audit["a.refused-by"], other: 1 })).toEqual(
      [
        { policy: "ClusterPodSchedulingPolicy/etcd-pool", generation: 7, rule: "nodeSelector" },
        { policy: "PodSchedulingPolicy/shop/zone", rule: "tolerations" },
      ],
    );
  });

  test("names the object that a part of a policy is in", () => {
    const related = { kind: "NodeSchedulingPolicy", name: "cluster", generation: 2 };
    const event = { type: "Warning", reason: "Denied", related } as const;
    const group = { kind: "NodeGroup", name: "ControlPlane" };
    expect(auditOf([refused({ policy: group, event })], true)).toEqual({
      "a.refused-by": "NodeSchedulingPolicy/cluster@2 nodeSelector USHER-P30",
    });
  });

  test.each<[string, Partial<ModuleFinding>, boolean]>([
    ["a request that is admitted", {}, false],
    ["an outcome that does not refuse", { outcome: "would-violate" }, true],
    ["a finding without a policy", { policy: undefined as never }, true],
    ["a policy that an object alone names", { policy: { kind: "X", name: "x", gone: true } }, true],
  ])("is not recorded of %s", (_, over, denied) => {
    expect(auditOf([refused(over)], denied)).toEqual({});
  });

  test("that another client wrote into the log is not believed", () => {
    for (const text of ["", "x", "@7 rule", "a b\nc", "; ;", " "])
      expect(refusingPolicies({ "w/a.refused-by": text }).every(({ policy }) => policy !== "")).toBe(true);
    expect(refusingPolicies({ "w/a.refused-by": { a: 1 } })).toEqual([]);
  });
});
