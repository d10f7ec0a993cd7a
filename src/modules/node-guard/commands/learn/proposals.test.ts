import { expect, test } from "vitest";
import type { Observation } from "../../../../core/evaluate/observations.ts";
import { proposalsOf, type Refusal, refusalFields } from "./proposals.ts";

const seen = (refusal: Partial<Refusal>, at: number, count = 1): Observation => ({
  fields: refusalFields({
    group: "ControlPlane",
    actor: "",
    namespace: "",
    serviceAccount: "",
    ...refusal,
  }),
  count,
  first: at,
  last: at,
});

test.each<[string, string, string]>([
  ["system:serviceaccount:batch:scheduler", "assigners", "batch/scheduler"],
  ["system:vendor:x", "assigners", "system:vendor:x"],
  ["alice@example.com", "assigners", "alice@example.com"],
  ["corp/alice", "exactUsers", "corp/alice"],
])("an actor %s is proposed for %s as %s", (actor, list, entry) => {
  expect(proposalsOf([seen({ actor }, 0)])).toMatchObject([{ group: "ControlPlane", list, entry, count: 1 }]);
});

test("a pod is proposed by its service account, and both where both failed", () => {
  const both = seen({ actor: "mallory", namespace: "shop", serviceAccount: "web" }, 1_000);
  expect(proposalsOf([both])).toMatchObject([
    { list: "assigners", entry: "mallory" },
    { list: "workloads", entry: "shop/web" },
  ]);
  expect(proposalsOf([seen({ namespace: "shop" }, 0)])).toMatchObject([{ entry: "shop/default" }]);
});

test.each(["system:admin", "kube:admin", "kubernetes-admin"])(
  "proposes %s as an emergency entry, and no entry for the namespace of its debug pod",
  (actor) => {
    const refused = [
      seen({ actor }, 0),
      seen({ actor, namespace: "openshift-debug-x7k2p", serviceAccount: "default" }, 0),
    ];
    expect(proposalsOf(refused)).toMatchObject([{ list: "emergencyUsers", entry: actor, count: 2 }]);
  },
);

test("one entry for all that it would have admitted, the most frequent first, with first and last sight", () => {
  const web = (actor: string, at: number, count: number) =>
    seen({ actor, namespace: "shop", serviceAccount: "web" }, at, count);
  expect(proposalsOf([web("a", 1_000, 2), web("b", 61_000, 3), web("a", 31_000, 1)])).toEqual([
    {
      group: "ControlPlane",
      list: "workloads",
      entry: "shop/web",
      count: 6,
      first: "1970-01-01T00:00:01.000Z",
      last: "1970-01-01T00:01:01.000Z",
    },
    expect.objectContaining({ entry: "a", count: 3 }),
    expect.objectContaining({ entry: "b", count: 3 }),
  ]);
});

test("never a prefix, and nothing that no list can name", () => {
  for (const actor of [" alice", "al\u0000ice", "system:serviceaccount:a", "system:serviceaccount:a:b:c"])
    expect(proposalsOf([seen({ actor }, 0)]), actor).toEqual([]);
  for (const namespace of ["debug-*", "*", "a/b", "A"])
    expect(proposalsOf([seen({ namespace, serviceAccount: "x" }, 0)]), namespace).toEqual([]);
  expect(proposalsOf([{ fields: {}, count: 1, first: 0, last: 0 }])).toEqual([]);
});
