import fc from "fast-check";
import { expect, test } from "vitest";
import {
  isNodeIdentity,
  matchesActor,
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
])("%s parses as %j", (text, principal) => {
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

test("a request without a name matches no principal", () => {
  expect(matchesActor(user(""), {})).toBe(false);
  expect(matchesActor(user("alice"), undefined)).toBe(false);
  expect(matchesActor(user("alice"), { username: null })).toBe(false);
});

test("a user's name is taken as it is written", () => {
  fc.assert(
    fc.property(
      fc.oneof(fc.string({ unit: "binary" }), fc.string({ unit: fc.constantFrom(..."ab/:* -") })),
      (written) => {
        const principal = parsePrincipal(written);
        if ("kind" in principal && principal.kind === "user") expect(principal.name).toBe(written);
      },
    ),
    { numRuns: 500 },
  );
});
