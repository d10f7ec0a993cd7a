import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  canonicalPrincipal,
  isNodeIdentity,
  matchesActor,
  matchesActorGroup,
  matchesPodGroup,
  matchesPodNamespace,
  type Principal,
  parsePrincipal,
  serviceAccountOf,
} from "./principals.ts";

const account = (namespace: string, name: string): Principal => ({ kind: "serviceAccount", namespace, name });
const user = (name: string): Principal => ({ kind: "user", name });

test.each<[string, Principal]>([
  ["kube-system/default", account("kube-system", "default")],
  ["system:serviceaccount:kube-system:default", account("kube-system", "default")],
  ["team-a/my.account-1", account("team-a", "my.account-1")],
  [
    "openshift-must-gather-*/default",
    { kind: "serviceAccount", namespace: "openshift-must-gather-", name: "default", namespacePrefix: true },
  ],
  [
    "system:serviceaccount:debug-*:sa",
    { kind: "serviceAccount", namespace: "debug-", name: "sa", namespacePrefix: true },
  ],
  ["system:kube-scheduler", user("system:kube-scheduler")],
  ["alice", user("alice")],
  ["Alice", user("Alice")],
  ["alice@example.com", user("alice@example.com")],
  ["system:vendor:x", user("system:vendor:x")],
  ["system:serviceaccounts:x", user("system:serviceaccounts:x")],
  ["Jane Doe", user("Jane Doe")],
  ["alice*", user("alice*")],
  ["__proto__", user("__proto__")],
])("%s is %j", (text, principal) => {
  expect(parsePrincipal(text)).toEqual(principal);
});

test.each([
  "",
  " alice",
  "alice ",
  "\u00a0alice",
  "al\u0000ice",
  "alice\n",
  "a\tb",
  "a/b/c",
  "/",
  "a/",
  "/b",
  "corp/Alice",
  "Corp/alice",
  "a.b/c",
  "*/default",
  "-*/default",
  "a*b/default",
  "a/b*",
  "a**/b",
  `${"a".repeat(63)}*/b`,
  "system:serviceaccount:",
  "system:serviceaccount:a",
  "system:serviceaccount:a:",
  "system:serviceaccount::b",
  "system:serviceaccount:kube-system:default:x",
  "system:serviceaccount:A:b",
  "system:serviceaccount:a/b",
  "system:serviceaccount:*:b",
])("%j is refused", (text) => {
  expect(parsePrincipal(text)).toEqual({ problem: expect.stringMatching(/\w+ \w+/) });
});

test.each<[string, object | undefined]>([
  ["system:serviceaccount:a:b", { namespace: "a", name: "b" }],
  ["system:serviceaccount:a:b.c", { namespace: "a", name: "b.c" }],
  ["system:serviceaccount:a:b:c", undefined],
  ["system:serviceaccount:a.x:b", undefined],
  ["system:serviceaccount::b", undefined],
  ["system:serviceaccount:a:", undefined],
  ["system:serviceaccount:a", undefined],
  ["system:serviceaccount:A:b", undefined],
  ["System:serviceaccount:a:b", undefined],
  [" system:serviceaccount:a:b", undefined],
  ["a/b", undefined],
  ["", undefined],
])("the service account of %j", (username, expected) => {
  expect(serviceAccountOf(username)).toEqual(expected);
});

test.each<[object | undefined, string | undefined]>([
  [{ username: "system:node:cp-0", groups: ["system:nodes", "system:authenticated"] }, "cp-0"],
  [{ username: "system:node:cp-0", groups: [] }, undefined],
  [{ username: "system:node:cp-0" }, undefined],
  [{ username: "cp-0", groups: ["system:nodes"] }, undefined],
  [{ username: "system:node:", groups: ["system:nodes"] }, undefined],
  [{ username: "system:node:cp-0", groups: "system:nodes" }, undefined],
  [{ username: "system:node:cp-0", groups: null }, undefined],
  [{}, undefined],
  [undefined, undefined],
])("%j is the kubelet of %s", (userInfo, node) => {
  expect(isNodeIdentity(userInfo as never)).toBe(node);
});

function parsed(text: string): Principal {
  const principal = parsePrincipal(text);
  if ("problem" in principal) throw new Error(principal.problem);
  return principal;
}

test.each<[string, string, boolean]>([
  ["a/b", "system:serviceaccount:a:b", true],
  ["system:serviceaccount:a:b", "system:serviceaccount:a:b", true],
  ["a/b", "a/b", false],
  ["a/b", "system:serviceaccount:a:c", false],
  ["a/b", "system:serviceaccount:aa:b", false],
  ["a/b", "system:serviceaccount:a:b:c", false],
  ["debug-*/sa", "system:serviceaccount:debug-x1:sa", true],
  ["debug-*/sa", "system:serviceaccount:debug-:sa", false],
  ["debug-*/sa", "system:serviceaccount:debug:sa", false],
  ["debug-*/sa", "system:serviceaccount:debug-x1:other", false],
  ["debug-*/sa", "system:serviceaccount:debug-x:y:sa", false],
  ["alice", "alice", true],
  ["alice", "Alice", false],
  ["alice", "alice ", false],
  ["é", "e\u0301", false],
])("%s as the actor %j: %s", (text, username, expected) => {
  expect(matchesActor(parsed(text), { username, groups: [] })).toBe(expected);
});

test("a request without a name is nobody's", () => {
  expect(matchesActor(user(""), {})).toBe(false);
  expect(matchesActor(user("alice"), undefined)).toBe(false);
  expect(matchesActor(user("alice"), { username: null })).toBe(false);
});

describe("pods", () => {
  test.each<[string, string, string | undefined, boolean, boolean]>([
    ["a/sa", "a", "sa", true, true],
    ["a/sa", "a", "other", true, false],
    ["a/sa", "b", "sa", false, false],
    ["a/default", "a", "", true, true],
    ["a/default", "a", undefined, true, true],
    ["a/sa", "a", undefined, true, false],
    ["debug-*/sa", "debug-1", "sa", true, true],
    ["debug-*/sa", "debug-1", "x", true, false],
    ["debug-*/sa", "debug", "sa", false, false],
    ["alice", "alice", "alice", false, false],
  ])(
    "%s for a pod of %s/%s: by namespace %s, exact %s",
    (text, namespace, serviceAccountName, wide, exact) => {
      const principal = parsed(text);
      expect(matchesPodNamespace(principal, { namespace, serviceAccountName }, "Namespace")).toBe(wide);
      expect(matchesPodNamespace(principal, { namespace, serviceAccountName }, "Exact")).toBe(exact);
    },
  );
});

test("groups", () => {
  const info = { username: "x", groups: ["admins"] };
  expect([
    matchesActorGroup("admins", info),
    matchesActorGroup("admin", info),
    matchesActorGroup("admins", {}),
  ]).toEqual([true, false, false]);
  expect(matchesPodGroup("system:serviceaccounts:a", "a")).toBe(true);
  expect(matchesPodGroup("system:serviceaccounts:a", "b")).toBe(false);
  expect(matchesPodGroup("system:serviceaccounts", "a")).toBe(false);
  expect(matchesPodGroup("system:serviceaccounts:", "")).toBe(false);
  expect(matchesPodGroup("admins", "admins")).toBe(false);
});

describe("one spelling", () => {
  test.each<[Principal, string]>([
    [parsed("a/b"), "system:serviceaccount:a:b"],
    [parsed("system:serviceaccount:a:b"), "system:serviceaccount:a:b"],
    [parsed("debug-*/b"), "system:serviceaccount:debug-*:b"],
    [user("alice"), "alice"],
    [user("corp/alice"), '{"user":"corp/alice"}'],
    [user("system:serviceaccount:a:b"), '{"user":"system:serviceaccount:a:b"}'],
    [
      user('{"user":"system:serviceaccount:a:b"}'),
      String.raw`{"user":"{\"user\":\"system:serviceaccount:a:b\"}"}`,
    ],
  ])("%j is %s", (principal, text) => {
    expect(canonicalPrincipal(principal)).toBe(text);
  });

  const names = fc.constantFrom(
    "a",
    "a-",
    "b",
    "a.b",
    "system:serviceaccount:a:b",
    "a/b",
    '{"user":"a/b"}',
    "alice",
    "x*",
    "",
  );
  const principals: fc.Arbitrary<Principal> = fc.oneof(
    names.map(user),
    fc
      .tuple(fc.constantFrom("a", "b"), fc.constantFrom("a", "b.c"))
      .map(([namespace, name]) => account(namespace, name)),
    fc
      .constantFrom("a-", "b")
      .map((namespace) => ({ kind: "serviceAccount", namespace, name: "a", namespacePrefix: true }) as const),
  );

  test("different principals are never spelt alike", () => {
    fc.assert(
      fc.property(principals, principals, (a, b) => {
        expect(canonicalPrincipal(a) === canonicalPrincipal(b)).toBe(JSON.stringify(a) === JSON.stringify(b));
      }),
      { numRuns: 1000 },
    );
  });

  test("what is read is spelt so that it reads the same", () => {
    const text = fc.oneof(
      fc.string({ unit: "binary" }),
      fc.string({ unit: fc.constantFrom(..."ab/:* -") }),
      fc.stringMatching(/^[a-z]{1,3}\*?\/[a-z.]{1,3}$/),
    );
    fc.assert(
      fc.property(text, (written) => {
        const principal = parsePrincipal(written);
        if ("problem" in principal || written.startsWith("{")) return;
        expect(parsePrincipal(canonicalPrincipal(principal))).toEqual(principal);
        if (principal.kind === "user") expect(principal.name).toBe(written);
      }),
      { numRuns: 500 },
    );
  });
});
