import fc from "fast-check";
import { expect, test } from "vitest";
import { indexWith, node, owned, patched, patchFor, rule } from "../../../../test/builders/node.ts";
import { KEY } from "../../../../test/builders/node-reconcile.ts";
import { at, type JsonObject } from "../../../core/json.ts";
import { labelsOf } from "../../../core/kubernetes/object.ts";
import { RECORD } from "../ledger/record.ts";

const NAMES = ["w-0", "w-1", "x"];
const KEYS = [
  KEY,
  "test.openshift.io/foo2",
  "node-role.kubernetes.io/edge",
  "plain",
  "kubernetes.io/os",
  "bad key",
];
const VALUES = ["a", "b", "not valid"];
const pick = <T>(from: readonly T[]) => fc.constantFrom(...from);
const anyMap = fc.dictionary(pick(KEYS), pick(VALUES), { maxKeys: 3 });
const anyTaints = fc.array(
  fc.record({
    key: pick(["dedicated", "gpu", "usher.dev/starting"]),
    value: pick(["", "a", "b"]),
    effect: pick(["NoSchedule", "NoExecute", "Bad"]),
  }),
  { maxLength: 2 },
);
const anyRule = fc
  .record({
    name: pick(["a", "b", "c", "d"]),
    spec: fc.record(
      {
        nodeNamePatterns: fc.array(pick(["w-.*", "w-0", "x|w-1", ".*", "[", ""]), { maxLength: 2 }),
        nodeSelector: fc.record({
          matchLabels: fc.dictionary(pick([KEY, "plain"]), pick(["a", "b"]), { maxKeys: 1 }),
        }),
        labels: anyMap,
        annotations: anyMap,
        taints: anyTaints,
        priority: fc.integer({ min: -1, max: 1 }),
        startupTaint: fc.boolean(),
      },
      { requiredKeys: ["labels"] },
    ),
  })
  .map(({ name, spec }) => rule(name, spec as JsonObject));
const anyOwned = fc
  .record(
    { domain: pick(["test.openshift.io", "kubernetes.io", ""]), namePattern: pick(["foo.*", "p.*", "("]) },
    { requiredKeys: [] },
  )
  .map((spec) => owned("o", spec as JsonObject));
const anyPolicies = fc.array(
  fc.oneof({ weight: 3, arbitrary: anyRule }, { weight: 1, arbitrary: anyOwned }),
  { maxLength: 6 },
);
const anyNode = fc
  .record({
    name: pick(NAMES),
    labels: fc.dictionary(pick(KEYS.slice(0, 5)), pick(["a", "b"]), { maxKeys: 4 }),
    taints: fc.uniqueArray(
      fc.record({
        key: pick(["dedicated", "mine"]),
        value: pick(["", "a", "z"]),
        effect: pick(["NoSchedule"]),
      }),
      { selector: ({ key, effect }) => key + effect, maxLength: 2 },
    ),
  })
  .map(({ name, labels, taints }) => node(name, labels, { spec: { taints } }));

/** Of two policies with one name, as a cluster never has them, the first. */
function distinct(policies: readonly JsonObject[]): JsonObject[] {
  const seen = new Map(policies.map((one) => [`${one["kind"]} ${at(one, "metadata", "name")}`, one]));
  return [...seen.values()];
}

test("one write is enough, and the order of policies does not matter", () => {
  fc.assert(
    fc.property(anyPolicies, anyNode, (some, one) => {
      const policies = distinct(some);
      const index = indexWith(policies);
      const after = patched(one, index);
      expect(patchFor(after, index)).toEqual([]);
      expect(patched(one, indexWith([...policies].reverse()))).toEqual(after);
    }),
    { numRuns: 400 },
  );
});

test("protected and unowned labels stay, and so do taints of other writers once all rules are deleted", () => {
  fc.assert(
    fc.property(anyPolicies, anyNode, (some, one) => {
      const policies = distinct(some);
      const after = patched(one, indexWith(policies));
      const owning = policies.filter(({ kind }) => kind === "OwnedLabels");
      for (const key of Object.keys(labelsOf(one) ?? {})) {
        if (key === "kubernetes.io/os" || key.startsWith("node-role") || owning.length === 0)
          expect(labelsOf(after)).toHaveProperty([key]);
      }
      const bare = patched(after, indexWith([]));
      const ids = (list: unknown) => (list as JsonObject[] | undefined)?.map(({ key }) => key) ?? [];
      expect(ids(at(bare, "spec", "taints")).sort()).toEqual(
        expect.arrayContaining(ids(at(one, "spec", "taints")).filter((key) => key === "mine")),
      );
      expect(at(bare, "metadata", "annotations", RECORD)).toBeUndefined();
    }),
    { numRuns: 300 },
  );
});

test("an index that policies were added to and removed from equals a new one of those left", () => {
  fc.assert(
    fc.property(anyPolicies, anyPolicies, anyNode, (first, second, one) => {
      const index = indexWith([]);
      const prepared = (list: readonly JsonObject[]) => {
        const made = indexWith(list);
        return [...made.rules, ...made.ownerships];
      };
      const gone = prepared(distinct(first));
      const stay = prepared(distinct(second));
      for (const policy of [...gone, ...stay]) index.add(policy);
      for (const policy of gone) index.remove(policy);
      expect(patched(one, index)).toEqual(patched(one, indexWith(distinct(second))));
    }),
    { numRuns: 300 },
  );
});
