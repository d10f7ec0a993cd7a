import fc from "fast-check";
import { describe, expect, it, test } from "vitest";
import { checkSubdomain } from "../../core/kubernetes/names.ts";
import { describeSubject, type LimitSubject, ledgerName, subjectOf } from "./subject.ts";

describe("the subject of a request", () => {
  const account = "system:serviceaccount:shop:ci";
  test.each([
    ["alice", "Namespace", { username: "alice" }],
    [account, "Account", { username: account }],
    [account, "Namespace", { serviceAccountsOf: "shop" }],
    // Malformed accounts are system users, each for itself.
    ["system:serviceaccount:shop", "Namespace", { username: "system:serviceaccount:shop" }],
    ["system:serviceaccount:Shop:ci", "Namespace", { username: "system:serviceaccount:Shop:ci" }],
    ["system:serviceaccount:a:b:c", "Namespace", { username: "system:serviceaccount:a:b:c" }],
  ] as const)("%s, counted by %s", (username, per, subject) => {
    expect(subjectOf(username, per)).toEqual(subject);
  });

  it("is described by its user name, or by the group of the namespace's accounts", () => {
    expect(describeSubject({ username: "alice" })).toBe("alice");
    expect(describeSubject({ serviceAccountsOf: "shop" })).toBe("system:serviceaccounts:shop");
  });
});

describe("the name of a ledger", () => {
  test.each([
    [{ username: "alice" }, "u-alice"],
    [{ username: "Alice@x.io" }, "u--41lice-40x-2eio"],
    [{ username: "é-€" }, "u--e9-2d-u20ac"],
    [{ serviceAccountsOf: "alice" }, "n-alice"],
  ])("%j is %s", (subject, name) => expect(ledgerName(subject)).toBe(name));

  // Unpaired surrogates, spelled-out escapes, long strings that differ at their end.
  const hostile = fc.oneof(
    fc.string({ unit: "binary" }),
    fc.array(fc.integer({ min: 0, max: 0xffff })).map((units) => String.fromCharCode(...units)),
    fc.string({ unit: fc.constantFrom("-", "u", "2", "d", "0", "A", "a", "\ud800", "\udfff") }),
    fc.string({ minLength: 190, maxLength: 400, unit: fc.constantFrom("a", "-") }),
  );
  const subject: fc.Arbitrary<LimitSubject> = fc.oneof(
    hostile.map((username) => ({ username })),
    hostile.map((serviceAccountsOf) => ({ serviceAccountsOf })),
  );

  it("is a legal name, and no two subjects share one", () => {
    fc.assert(
      fc.property(subject, subject, (a, b) => {
        expect(checkSubdomain(ledgerName(a))).toBeUndefined();
        expect(ledgerName(a) === ledgerName(b)).toBe(JSON.stringify(a) === JSON.stringify(b));
      }),
      { numRuns: 2_000 },
    );
  });
});
